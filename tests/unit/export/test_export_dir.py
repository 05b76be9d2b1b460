from __future__ import annotations

from pathlib import Path

import pytest

from oseq.config.params import ConfigError
from oseq.export.export_dir import check_export_dir, partial_folder


def write(folder):
    with partial_folder(folder) as partial:
        (partial / "file").write_text("new")


@pytest.mark.parametrize("name", ["export", "models/en-de/1"])
def test_the_folder_is_there_when_all_is_written(tmp_path, name):
    folder = tmp_path / name
    with partial_folder(folder) as partial:
        (partial / "file").write_text("new")
        assert not folder.exists()
    assert (folder / "file").read_text() == "new"
    assert not partial.exists()


def test_an_empty_folder_may_be_exported_to(tmp_path):
    write(tmp_path / "export")
    (tmp_path / "other").mkdir()
    write(tmp_path / "other")
    assert (tmp_path / "other" / "file").exists()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_nothing_is_left(tmp_path, error):
    with pytest.raises(error), partial_folder(tmp_path / "export") as partial:
        (partial / "file").write_text("half")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_export_left_is_not_part_of_the_next(tmp_path):
    (tmp_path / "export.partial").mkdir()
    (tmp_path / "export.partial" / "old").write_text("half")
    write(tmp_path / "export")
    assert [path.name for path in (tmp_path / "export").iterdir()] == ["file"]
    assert not (tmp_path / "export.partial").exists()


def test_a_folder_that_holds_something_is_refused_and_left_as_it_is(tmp_path):
    write(tmp_path / "export")
    with pytest.raises(ConfigError, match="export_dir: .*export is not empty"):
        write(tmp_path / "export")
    assert [path.name for path in tmp_path.iterdir()] == ["export"]


@pytest.mark.parametrize("name", ["file", "file/export"])
def test_a_file_in_the_way_is_refused(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="file is no directory"):
        check_export_dir(tmp_path / name)


@pytest.mark.parametrize("name", [".", "../working"])
def test_the_working_directory_is_refused(tmp_path, monkeypatch, name):
    (tmp_path / "working").mkdir()
    monkeypatch.chdir(tmp_path / "working")
    with pytest.raises(ConfigError, match="export_dir: .* is the working directory"):
        check_export_dir(Path(name))


def test_a_mount_point_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "is_mount", lambda path: path == tmp_path)
    with pytest.raises(ConfigError, match="or a mount point"):
        check_export_dir(tmp_path)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_leads_to_the_export(tmp_path, is_there):
    if is_there:
        (tmp_path / "1").mkdir()
    (tmp_path / "latest").symlink_to("1")
    write(tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "1" / "file").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"1", "latest"}

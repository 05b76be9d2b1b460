"""Writes a parallel corpus of short sentences about dates, money, names, measures.

What the sentences say comes from the Unicode CLDR through the Babel package, which
knows how each locale writes it. Sentence templates exist for English and German; with
any other locale the values stand side by side without words around them, so that
every pair of Babel's locales makes a corpus:

    python make_corpus.py --source-locale fr --target-locale sv --output data/fr-sv

The same arguments give the same files. All pairs differ on the source and on the
target side, so no test line occurs in train; every line has one translation only.
"""

from __future__ import annotations

import argparse
import random
import string
from collections.abc import Iterator, Sequence
from pathlib import Path

from babel import Locale, UnknownLocaleError

# Beside this script, whose directory Python searches first.
from templates import TEMPLATES
from values import Values, clean, is_plain

NUM_HELD_OUT = 1000  # lines of each of valid and test
# Draws in vain before giving up: a locale whose text is never plain, for example.
MAX_DRAWS_PER_PAIR = 20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source-locale", default="en")
    parser.add_argument("--target-locale", default="de")
    parser.add_argument("--output", type=Path, required=True, help="a directory")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--num-pairs", type=int, default=60_000, help="of train, valid and test"
    )
    arguments = parser.parse_args()
    if arguments.num_pairs <= 2 * NUM_HELD_OUT:
        parser.error(f"--num-pairs must be above {2 * NUM_HELD_OUT}")

    try:
        source, target = (
            Locale.parse(name.replace("-", "_"))
            for name in (arguments.source_locale, arguments.target_locale)
        )
        pairs = make_pairs(source, target, arguments.num_pairs, arguments.seed)
    except (UnknownLocaleError, ValueError) as error:
        parser.error(str(error))
    write_corpus(pairs, arguments.output, str(source), str(target))
    print(f"{len(pairs)} pairs, {source} to {target}, in {arguments.output}")


def make_pairs(
    source: Locale, target: Locale, num_pairs: int, seed: int
) -> list[tuple[str, str]]:
    """Returns ``num_pairs`` pairs of lines, distinct on either side, in random order.

    Raises:
      ValueError: the two locales do not give that many.
    """
    sources: set[str] = set()
    targets: set[str] = set()
    pairs = []
    sentences = draw_sentences(source, target, random.Random(seed))
    for _ in range(MAX_DRAWS_PER_PAIR * num_pairs):
        line, translation = next(sentences)
        if line in sources or translation in targets:
            continue
        if not (is_plain(line) and is_plain(translation)):
            continue
        sources.add(line)
        targets.add(translation)
        pairs.append((line, translation))
        if len(pairs) == num_pairs:
            return pairs
    raise ValueError(f"{source} to {target} gave only {len(pairs)} distinct pairs")


def draw_sentences(
    source: Locale, target: Locale, rng: random.Random
) -> Iterator[tuple[str, str]]:
    """Yields sentences in both locales, one template after the other."""
    values = Values(source, target, rng)
    templates = templates_for(source.language, target.language)
    while True:
        for source_template, target_template in templates:
            drawn = {slot: values.draw(kind(slot)) for slot in slots(source_template)}
            line, translation = (
                clean(template.format_map({k: v(locale) for k, v in drawn.items()}))
                for template, locale in (
                    (source_template, source),
                    (target_template, target),
                )
            )
            yield line, translation


def templates_for(source: str, target: str) -> list[tuple[str, str]]:
    """Returns pairs of templates; wordless ones unless both languages have words."""
    if all(language in TEMPLATES[0] for language in (source, target)):
        return [(template[source], template[target]) for template in TEMPLATES]
    wordless = []
    for template in TEMPLATES:
        values_only = "; ".join(f"{{{slot}}}" for slot in slots(template["en"]))
        wordless.append((values_only, values_only))
    return wordless


def slots(template: str) -> list[str]:
    """Returns names of the replacement fields of a template, in their order."""
    return [field for _, field, _, _ in string.Formatter().parse(template) if field]


def kind(slot: str) -> str:
    """Returns the kind of value for a slot: ``time`` for ``time2``."""
    return slot.rstrip(string.digits)


def write_corpus(
    pairs: Sequence[tuple[str, str]], directory: Path, source: str, target: str
) -> None:
    """Writes ``{train,valid,test}.{source,target}``; ``test.{target}`` comes last."""
    directory.mkdir(parents=True, exist_ok=True)
    held_out = 2 * NUM_HELD_OUT
    splits = {
        "train": pairs[held_out:],
        "valid": pairs[:NUM_HELD_OUT],
        "test": pairs[NUM_HELD_OUT:held_out],
    }
    for split, lines in splits.items():
        for side, suffix in enumerate((source, target)):
            text = "".join(pair[side] + "\n" for pair in lines)
            (directory / f"{split}.{suffix}").write_bytes(text.encode())


if __name__ == "__main__":
    main()

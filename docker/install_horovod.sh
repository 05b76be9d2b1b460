#!/usr/bin/env bash
# Builds Horovod for the installed TensorFlow, and installs it.
#
#   docker/install_horovod.sh [PYTHON]      default: python3
#
# Horovod 0.28.1 is published as sources only. They compile against a current
# TensorFlow once its XLA operations are left out, which are optional. CPU tensors
# go through Gloo, through MPI too where mpicxx is on the PATH; GPU tensors go
# through NCCL where the CUDA compiler and nccl.h are found.
#
# A build takes about five minutes of two cores. The wheel is kept, by all that it
# depends on, in $OSEQ_WHEELS (default: ~/.cache/oseq/wheels).
set -euo pipefail

readonly VERSION=0.28.1
readonly PYTHON=${1:-python3}
readonly WHEELS=${OSEQ_WHEELS:-${XDG_CACHE_HOME:-$HOME/.cache}/oseq/wheels}

say() { echo "install_horovod: $*" >&2; }
pip() { "$PYTHON" -m pip --quiet --disable-pip-version-check "$@"; }

# Prints "<TensorFlow>-<Python>-<machine>", all that the compiled code is bound to.
built_for() {
    TF_CPP_MIN_LOG_LEVEL=3 "$PYTHON" - <<'PYTHON'
import importlib.metadata
import platform
import sys

try:
    tensorflow = importlib.metadata.version("tensorflow")
except importlib.metadata.PackageNotFoundError:
    sys.exit("install_horovod: install TensorFlow first: pip install -e .")
python = "cp%d%d" % sys.version_info[:2]
print(f"tf{tensorflow}-{python}-{platform.machine()}")
PYTHON
}

# Sets what the build reads from the environment, and $features for the wheel's key.
choose_features() {
    export HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1
    export HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITH_GLOO=1
    # The sources ask for a CMake older than what CMake 4 still takes.
    export CMAKE_POLICY_VERSION_MINIMUM=3.5
    features=gloo
    if command -v mpicxx >/dev/null; then
        export HOROVOD_WITH_MPI=1
        features+=-mpi
    else
        export HOROVOD_WITHOUT_MPI=1
    fi
    if command -v nvcc >/dev/null && has_nccl; then
        export HOROVOD_GPU_OPERATIONS=NCCL
        features+=-nccl
    fi
}

has_nccl() {
    local folder
    for folder in "${HOROVOD_NCCL_HOME:-/usr}/include" /usr/local/include; do
        [[ -f $folder/nccl.h ]] && return 0
    done
    return 1
}

# Builds the wheel into the folder $1.
build() {
    local work
    work=$(mktemp -d)
    # shellcheck disable=SC2064  # the folder as it is now
    trap "rm -rf '$work'" EXIT
    command -v g++ >/dev/null || { say "needs a C++ compiler: g++"; exit 1; }
    pip install 'setuptools<81' wheel packaging cloudpickle psutil pyyaml
    command -v cmake >/dev/null || {
        pip install --target "$work/cmake" cmake
        export PATH=$work/cmake/bin:$PATH PYTHONPATH=$work/cmake${PYTHONPATH:+:$PYTHONPATH}
    }
    pip download --no-binary horovod --no-deps --no-build-isolation \
        --dest "$work" "horovod==$VERSION"
    tar -xzf "$work/horovod-$VERSION.tar.gz" -C "$work"
    sed -i '/xla_mpi_ops\.cc/d' \
        "$work/horovod-$VERSION/horovod/tensorflow/CMakeLists.txt"
    say "building Horovod $VERSION ($features); this takes some minutes"
    if ! pip wheel --no-build-isolation --no-deps --wheel-dir "$work/out" \
        "$work/horovod-$VERSION" >"$work/log" 2>&1; then
        tail -n 60 "$work/log" >&2
        say "the build failed; above are its last lines"
        exit 1
    fi
    # Renamed when complete, so that a build that is stopped leaves no half wheel.
    mkdir -p "$(dirname "$1")"
    rm -rf "$1"
    mv "$work/out" "$1"
}

main() {
    local key folder
    key=$(built_for)
    choose_features
    folder=$WHEELS/horovod-$VERSION-$key-$features
    compgen -G "$folder/*.whl" >/dev/null || build "$folder"
    pip install cloudpickle psutil pyyaml packaging
    pip install --no-deps --force-reinstall "$folder"/*.whl
    TF_CPP_MIN_LOG_LEVEL=3 "$PYTHON" -c 'import horovod.tensorflow'
    say "Horovod $VERSION ($features) is installed, from $folder"
}

main

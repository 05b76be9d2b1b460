#!/usr/bin/env bash
# Builds Horovod for the installed TensorFlow, and installs it.
#
#   docker/install_horovod.sh [PYTHON]      default: python3
#
# Horovod is published as sources only, which do not compile against a current
# TensorFlow as they are. CPU tensors go through Gloo, and through MPI too where mpicxx
# is on the PATH. GPU tensors go through NCCL where there are a CUDA compiler of
# TensorFlow's major version and NCCL: the package nvidia-nccl-cu12 (oseq[gpu] brings
# it), else the system's. To decide otherwise:
#
#   HOROVOD_GPU_OPERATIONS  NCCL: fail where NCCL cannot be used; empty: CPUs only
#   HOROVOD_WITHOUT_MPI     1: without MPI
#   HOROVOD_CUDA_HOME       folder of bin/nvcc, else the PATH tells
#   HOROVOD_NCCL_HOME       folder of include/nccl.h and lib
#   OSEQ_WHEELS             where wheels are kept, else ~/.cache/oseq/wheels
#
# A build needs a C++ compiler and make, and takes some minutes. The wheel is kept. Its
# version names what it was built for, as in 0.28.1+tf2.21.0.gloo.r6.
set -euo pipefail

readonly VERSION=0.28.1
readonly SHA256=92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0
readonly REVISION=6  # to be raised with every change of what adapt does
readonly PYTHON=${1:-python3}
wheels=${OSEQ_WHEELS:-${XDG_CACHE_HOME:-~/.cache}/oseq/wheels}

say() { echo "install_horovod: $*" >&2; }
fail() { say "$@"; exit 1; }
pip() { "$PYTHON" -m pip --quiet --disable-pip-version-check "$@"; }

main() {
    local facts tensorflow cuda installed tag nccl full
    command -v "$PYTHON" >/dev/null || fail "there is no $PYTHON"
    facts=$(look_around)
    read -r tensorflow cuda installed tag nccl <<<"$facts"
    choose_features "$cuda" "$nccl"
    full=$VERSION+tf$tensorflow.$features.r$REVISION
    if [[ $installed == "$full" ]]; then
        say "Horovod $full is installed already"
        return
    fi
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    provide_wheel "$full" "horovod-$full-$tag.whl"
    pip install "$wheel"
    "$PYTHON" -c 'import horovod.tensorflow' 2>"$work/log" || {
        tail -n 20 "$work/log" >&2
        pip uninstall --yes horovod
        fail "Horovod cannot be imported; to build it anew, delete $wheel"
    }
    say "Horovod $full is installed, from $wheel"
}

# Prints the versions of TensorFlow, of its CUDA and of the installed Horovod, the tag
# of this Python and machine, and the folder of nvidia-nccl-cu12; - for what is absent.
look_around() {
    "$PYTHON" - <<'PYTHON'
import importlib.metadata
import importlib.util
import re
import sys
import sysconfig


def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "-"


if version("tensorflow") == "-":
    sys.exit(f"install_horovod: {sys.executable} has no TensorFlow: install oseq first")
tensorflow = re.sub("[^a-z0-9.]", ".", version("tensorflow"))
requirements = " ".join(importlib.metadata.requires("tensorflow"))
cuda = re.search(r"nvidia-cuda-runtime-cu(\d+)", requirements)
tag = "cp{0}{1}-cp{0}{1}-".format(*sys.version_info)
tag += re.sub("[-.]", "_", sysconfig.get_platform())
nccl = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.nccl")
nccl = nccl.submodule_search_locations[0] if nccl else "-"
print(tensorflow, cuda[1] if cuda else "-", version("horovod"), tag, nccl)
PYTHON
}

# Sets $features, and for the build what Horovod reads from the environment.
#   $1: the major version of TensorFlow's CUDA; $2: the folder of nvidia-nccl-cu12
choose_features() {
    export HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1
    export HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITH_GLOO=1
    features=gloo
    if [[ ${HOROVOD_WITHOUT_MPI:-} != 1 ]] && command -v mpicxx >/dev/null; then
        export HOROVOD_WITH_MPI=1
        features+=.mpi
    else
        export HOROVOD_WITHOUT_MPI=1
    fi
    case ${HOROVOD_GPU_OPERATIONS-where possible} in
        'where possible') find_nccl "$1" "$2" || say "without NCCL: $missing" ;;
        NCCL) find_nccl "$1" "$2" || fail "cannot use NCCL: $missing" ;;
        '') ;;
        *) fail "HOROVOD_GPU_OPERATIONS is to be NCCL, empty or not set" ;;
    esac
}

# Adds NCCL to $features, or sets $missing and returns 1; the arguments are as above.
find_nccl() {
    local nvcc=${HOROVOD_CUDA_HOME:+$HOROVOD_CUDA_HOME/bin/}nvcc cuda folder
    missing="there is no $nvcc"
    command -v "$nvcc" >/dev/null || return 1
    cuda=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\).*/\1/p')
    missing="$nvcc is of CUDA $cuda, TensorFlow of CUDA $1"
    [[ $cuda == "$1" ]] || return 1
    if [[ -z ${HOROVOD_NCCL_HOME:-} && -f $2/include/nccl.h ]]; then
        nccl_package=$2
        features+=.pipnccl.cu$cuda
    else
        missing="there is no nccl.h; pip install nvidia-nccl-cu$cuda"
        for folder in ${HOROVOD_NCCL_HOME:-/usr /usr/local /usr/local/cuda}; do
            [[ ! -f $folder/include/nccl.h ]] || missing=
        done
        [[ -z $missing ]] || return 1
        features+=.nccl.cu$cuda
    fi
    export HOROVOD_GPU_OPERATIONS=NCCL
}

# Sets $wheel: a wheel of the version $1, named $2, which is built if none was kept.
provide_wheel() {
    wheel=$wheels/$2
    [[ ! -f $wheel ]] || return 0
    if ! mkdir -p "$wheels" 2>/dev/null || [[ ! -w $wheels ]]; then
        say "cannot write to $wheels: the wheel will not be kept"
        wheels=$work
        wheel=$wheels/$2
    fi
    # One build at a time, and the second of two finds the wheel of the first. Where
    # there are no locks both build, which costs time and no more.
    exec 9>"$wheels/lock"
    flock --nonblock 9 || { say "waiting for another build"; flock 9 || true; }
    [[ -f $wheel ]] || build "$1" "$wheel" 9>&-
}

# Builds the version $1 into the file $2, in a shell of its own for the sake of what it
# exports: with the tools on its path, pip would take them for installed.
build() (
    local sources=$work/horovod-$VERSION log tool
    for tool in "${CXX:-c++}" make; do
        command -v "$tool" >/dev/null ||
            fail "there is no $tool to build with; Debian has it in: g++ make"
    done
    say "building Horovod $1; this takes some minutes"
    # Not into the environment, whose own setuptools may be another, but before it on
    # the path. Horovod's sources want a setuptools and a CMake of their time.
    pip install --target "$work/tools" \
        'setuptools<81' wheel packaging cloudpickle psutil pyyaml 'cmake<5'
    export PYTHONPATH=$work/tools${PYTHONPATH:+:$PYTHONPATH} PATH=$work/tools/bin:$PATH
    export CMAKE_POLICY_VERSION_MINIMUM=3.5 CMAKE_GENERATOR='Unix Makefiles'
    # A make that called this script has flags of its own, which are not meant here.
    MAKEFLAGS=-j$(nproc)
    export MAKEFLAGS

    pip download --no-binary horovod --no-deps --no-build-isolation --dest "$work" \
        "horovod==$VERSION"
    echo "$SHA256  $sources.tar.gz" | sha256sum --check --quiet
    tar -xzf "$sources.tar.gz" -C "$work"
    adapt "$sources"
    log=$(mktemp -t install_horovod.XXXXXX.log)
    HOROVOD_LOCAL_VERSION=${1#*+} pip wheel --no-build-isolation --no-deps --use-pep517 \
        --wheel-dir "$work/out" "$sources" >"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        fail "the build failed; the whole log is $log"
    }
    rm "$log"
    # Renamed when complete, so that whatever is stopped leaves no half wheel.
    cp "$work"/out/*.whl "$2.partial"
    mv "$2.partial" "$2"
)

# Changes the sources in $1 to what TensorFlow is today, and mends them.
adapt() {
    # Where Gloo coordinates, the search for workers that keep the others waiting
    # (HOROVOD_STALL_*) goes through a list that was filled but left at length zero.
    sed -i 's/global_ranks_\.reserve(size_)/global_ranks_.resize(size_)/' \
        "$1/horovod/common/gloo/gloo_controller.cc"
    # Workers tell each other in every cycle what they have to exchange, also when they
    # have nothing, for which they wake each other: a twentieth of a core that computes.
    # One that has nothing now waits until it has, a tenth of a second at most; not so
    # under MPI, where those who wait for such a worker keep their cores busy.
    sed -i -e 's|^  void RemoveJoinTensor();|&\
\
  void WaitForTensor(std::chrono::milliseconds at_most) {\
    std::unique_lock<std::mutex> lock(mutex_);\
    has_tensor_.wait_for(lock, at_most, [this] { return !tensor_table_.empty(); });\
  }|' -e 's|^  mutable std::mutex mutex_;|&\
\
  std::condition_variable has_tensor_;|' \
        -e 's|^#include <mutex>|#include <chrono>\n#include <condition_variable>\n&|' \
        "$1/horovod/common/tensor_queue.h"
    sed -i 's|^  return Status::OK();|  has_tensor_.notify_one();\n&|' \
        "$1/horovod/common/tensor_queue.cc"
    sed -i 's|^  state\.last_cycle_start = .*|\
  if (state.control_operation == LibType::GLOO \&\& !state.dynamic_process_sets \&\&\
      state.process_set_table.Ids().size() == 1 \&\& !state.shut_down) {\
    state.process_set_table.Get(0).tensor_queue.WaitForTensor(\
        std::chrono::milliseconds(100));\
  }\
&|' "$1/horovod/common/operations.cc"
    # Gloo's thread asks the kernel without a pause while a message lies there for which
    # nobody has made a buffer yet: up to a fifth of a core in training.
    sed -i -e 's|^ *// Wait for something to happen|\
    std::this_thread::sleep_for(std::chrono::microseconds(50));\n&|' \
        -e '1i #include <chrono>\n#include <thread>' \
        "$1/third_party/gloo/gloo/transport/tcp/loop.cc"
    # The operations for XLA are optional, and their interface is gone.
    sed -i '/xla_mpi_ops\.cc/d' "$1/horovod/tensorflow/CMakeLists.txt"
    # For GPUs: a header has moved, and a function has become a method.
    sed -i -e 's|tensorflow/compiler/xla/stream_executor|xla/stream_executor|' \
        -e '/^GpuStreamHandle AsGpuStreamValue/d' \
        -e 's/stream_executor::gpu::AsGpuStreamValue/static_cast<GpuStreamHandle>/' \
        -e 's/_context->stream())/_context->stream()->platform_specific_handle().stream)/' \
        "$1/horovod/tensorflow/mpi_ops.cc"
    [[ -n ${nccl_package:-} ]] || return 0
    # The package has its library only under its full name, and it is to be found
    # beside Horovod wherever both are installed.
    mkdir -p "$work/nccl/lib"
    ln -s "$nccl_package/include" "$work/nccl/include"
    ln -s "$nccl_package/lib/libnccl.so.2" "$work/nccl/lib/libnccl.so"
    export HOROVOD_NCCL_HOME=$work/nccl HOROVOD_NCCL_LINK=SHARED
    export LDFLAGS="${LDFLAGS:-} -Wl,-rpath,\$ORIGIN/../../nvidia/nccl/lib"
    sed -i '/^project(/a set(CMAKE_SKIP_RPATH TRUE)' "$1/CMakeLists.txt"
}

main

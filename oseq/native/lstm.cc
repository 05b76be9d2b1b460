// An LSTM over whole sequences for CPUs, forward and backward, as TensorFlow
// operations.
//
// What TensorFlow's own operations lose in a loop over steps is saved here: kernels are
// laid out for their products once and not in every step, no step waits for another
// thread, as each thread runs all steps of its own rows, and the gates are computed
// while their totals are in the cache.
//
// Shapes: B rows, T steps, I inputs, H units. The 4 H gates are in the order of Keras:
// input, forget, candidate, output. The compute type is float or bfloat16; products are
// summed in float, and gates and cells are float.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

#include "Eigen/Core"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace oseq {
namespace {

using Eigen::bfloat16;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::thread::ThreadPool;

// ---- Products with a kernel that is laid out for them

// A tile of a product, kTileRows x kTileColumns, stays in registers while it is summed.
#if defined(__AVX512F__)
constexpr int kWidth = 16;
constexpr int kTileRows = 8;
#elif defined(__AVX__)
constexpr int kWidth = 8;
constexpr int kTileRows = 6;
#else
constexpr int kWidth = 4;
constexpr int kTileRows = 6;
#endif
constexpr int kTileVectors = 2;
constexpr int kTileColumns = kTileVectors * kWidth;

// Of floats; in memory at any address.
typedef float Vector __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));

// What products multiply: bfloat16 where the processor has an instruction for it.
#ifdef __AVX512BF16__
template <typename T>
using Factor = T;
#else
template <typename T>
using Factor = float;
#endif

// So many neighbours along the sum are multiplied by one instruction.
template <typename E>
constexpr int kGroup = std::is_same<E, float>::value ? 1 : 2;

constexpr int64_t RoundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

template <typename V>
inline void StoreTile(const V (&sums)[kTileRows][kTileVectors], float* product,
                      int64_t width) {
  for (int i = 0; i < kTileRows; ++i) {
    for (int j = 0; j < kTileVectors; ++j) {
      *reinterpret_cast<Vector*>(product + i * width + j * kWidth) = (Vector)sums[i][j];
    }
  }
}

// Sets a tile of `product`, whose rows are `width` apart, to a tile's rows, `stride`
// apart, times a panel.
inline void MultiplyTile(const float* rows, int64_t stride, const float* panel,
                         int64_t depth, float* product, int64_t width) {
  Vector sums[kTileRows][kTileVectors] = {};
  for (int64_t k = 0; k < depth; ++k, panel += kTileColumns) {
    const Vector* columns = reinterpret_cast<const Vector*>(panel);
    for (int i = 0; i < kTileRows; ++i) {
      for (int j = 0; j < kTileVectors; ++j) {
        sums[i][j] += rows[i * stride + k] * columns[j];
      }
    }
  }
  StoreTile(sums, product, width);
}

#ifdef __AVX512BF16__
inline void MultiplyTile(const bfloat16* rows, int64_t stride, const bfloat16* panel,
                         int64_t depth, float* product, int64_t width) {
  __m512 sums[kTileRows][kTileVectors] = {};
  for (int64_t k = 0; k < depth; k += 2, panel += 2 * kTileColumns) {
    const __m512bh* columns = reinterpret_cast<const __m512bh*>(panel);
    for (int i = 0; i < kTileRows; ++i) {
      int32_t pair;
      std::memcpy(&pair, rows + i * stride + k, sizeof(pair));
      for (int j = 0; j < kTileVectors; ++j) {
        sums[i][j] =
            _mm512_dpbf16_ps(sums[i][j], (__m512bh)_mm512_set1_epi32(pair), columns[j]);
      }
    }
  }
  StoreTile(sums, product, width);
}
#endif

// A matrix [depth, columns] in panels of kTileColumns columns. In a panel, kGroup rows
// lie beside each other: [depth / kGroup, kTileColumns, kGroup]. What is missing in the
// last group and panel is zero.
template <typename E>
class Panels {
 public:
  Panels(int64_t depth, int64_t columns)
      : depth_(RoundUp(depth, kGroup<E>)),
        num_panels_(RoundUp(columns, kTileColumns) / kTileColumns),
        columns_(columns),
        data_(num_panels_ * depth_ * kTileColumns) {}

  int64_t depth() const { return depth_; }
  int64_t width() const { return num_panels_ * kTileColumns; }

  // Calls fill(p) for all panels p; all threads that call it share them. Whoever comes
  // first begins, as waking a thread takes as long as filling many. Returns when all
  // are filled: there is nothing to wait for but what another thread is doing right
  // now.
  template <typename Fill>
  void FillTogether(const Fill& fill) {
    for (int64_t p; (p = next_++) < num_panels_;) {
      fill(p);
      ++num_filled_;
    }
    while (num_filled_ < num_panels_) std::this_thread::yield();
  }

  // Takes rows of a panel, from `first` on, which begins a group, from `matrix`
  // [depth, columns].
  template <typename T>
  void SetRows(int64_t p, int64_t first, const T* matrix, int64_t depth) {
    const int64_t begin = p * kTileColumns,
                  end = std::min(begin + kTileColumns, columns_);
    E* place = PanelAt(p) + first * kTileColumns;
    for (int64_t k = 0; k < depth; k += kGroup<E>) {
      for (int64_t n = begin; n < begin + kTileColumns; ++n) {
        for (int g = 0; g < kGroup<E>; ++g) {
          const bool is_inside = n < end && k + g < depth;
          *place++ = is_inside ? static_cast<E>(matrix[(k + g) * columns_ + n]) : E(0);
        }
      }
    }
  }

  // Takes a panel from `matrix` [columns, depth].
  template <typename T>
  void SetTransposed(int64_t p, const T* matrix, int64_t depth) {
    // Blocks: a column of the matrix goes through as few lines of the cache as can be.
    constexpr int64_t kBlock = 16 * kGroup<E>;
    const int64_t begin = p * kTileColumns,
                  end = std::min(begin + kTileColumns, columns_);
    for (int64_t first = 0; first < depth_; first += kBlock) {
      const int64_t last = std::min(first + kBlock, depth_);
      for (int64_t n = begin; n < begin + kTileColumns; ++n) {
        for (int64_t k = first; k < last; k += kGroup<E>) {
          E* place = PanelAt(p) + k * kTileColumns + (n - begin) * kGroup<E>;
          for (int g = 0; g < kGroup<E>; ++g) {
            const bool is_inside = n < end && k + g < depth;
            place[g] = is_inside ? static_cast<E>(matrix[n * depth + k + g]) : E(0);
          }
        }
      }
    }
  }

  // Sets `product` [num_rows, width()] to `rows` [num_rows, depth()] times the matrix;
  // num_rows is a multiple of kTileRows.
  void Multiply(const E* rows, int64_t num_rows, float* product) const {
    for (int64_t p = 0; p < num_panels_; ++p) {
      const E* panel = data_.data() + p * depth_ * kTileColumns;
      for (int64_t i = 0; i < num_rows; i += kTileRows) {
        MultiplyTile(rows + i * depth_, depth_, panel, depth_,
                     product + i * width() + p * kTileColumns, width());
      }
    }
  }

 private:
  E* PanelAt(int64_t p) { return data_.data() + p * depth_ * kTileColumns; }

#ifdef __AVX512BF16__
  static_assert(EIGEN_MAX_ALIGN_BYTES >= 64, "panels are read as whole vectors");
#endif
  const int64_t depth_, num_panels_, columns_;
  Eigen::Array<E, Eigen::Dynamic, 1> data_;
  std::atomic<int64_t> next_{0}, num_filled_{0};
};

// ---- Rows and threads

template <typename T>
using Row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <typename T>
using ConstRow = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
// [rows, size], one row after the other; aligned, not initialized.
template <typename T>
using Rows = Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <typename T>
const T* DataOf(const Tensor& tensor) {
  return static_cast<const T*>(tensor.data());
}

template <typename T>
T* DataOf(Tensor* tensor) {
  return static_cast<T*>(tensor->data());
}

// Splits rows among threads.
class Shares {
 public:
  Shares(OpKernelContext* context, int64_t num_rows)
      : pool_(context->device()->tensorflow_cpu_worker_threads()->workers),
        num_rows_(num_rows) {
    const int64_t num_threads = pool_->NumThreads();
    const int64_t size = RoundUp(num_rows, num_threads) / num_threads;
    size_ = std::max<int64_t>(RoundUp(size, kTileRows), kTileRows);
  }

  // At least one.
  int64_t number() const {
    return RoundUp(std::max<int64_t>(num_rows_, 1), size_) / size_;
  }
  int64_t NumberOf(int64_t begin) const { return begin / size_; }

  // Calls work(begin, end) for the rows of each share, beside each other.
  template <typename Work>
  void Run(const Work& work) const {
    pool_->ParallelFor(num_rows_, ThreadPool::SchedulingParams::Fixed(size_), work);
  }

 private:
  ThreadPool* pool_;
  int64_t num_rows_, size_;
};

int64_t LongestOf(const int32_t* length, int64_t begin, int64_t end) {
  return begin < end ? *std::max_element(length + begin, length + end) : 0;
}

// Sets what lies beyond a row's length to zero, in `values` [B, T, size].
template <typename T>
void ClearPadding(T* values, int64_t row, int64_t length, int64_t num_steps,
                  int64_t size) {
  T* first = values + row * num_steps * size;
  std::fill(first + length * size, first + num_steps * size, T(0));
}

// Has memory brought to the cache while something else is computed.
inline void Prefetch(const void* values, int64_t num_bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t i = 0; i < num_bytes; i += kLine) {
    __builtin_prefetch(static_cast<const char*>(values) + i, 1);
  }
}

// ---- Operations

#define OSEQ_CHECK_SHAPE(context, index, ...)                                         \
  OP_REQUIRES(context, context->input(index).shape() == TensorShape(__VA_ARGS__),     \
              absl::InvalidArgumentError(                                             \
                  absl::StrCat(name(), ": input ", index, " has shape ",              \
                               context->input(index).shape().DebugString(), ", not ", \
                               TensorShape(__VA_ARGS__).DebugString())))

template <typename T>
class Lstm : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const TensorShape& shape = context->input(0).shape();
    OP_REQUIRES(context, shape.dims() == 3 && context->input(3).dims() == 2,
                absl::InvalidArgumentError(absl::StrCat(
                    name(), ": inputs are not [B, T, I], or the kernel not [H, 4 H]")));
    const int64_t num_rows = shape.dim_size(0), num_steps = shape.dim_size(1);
    const int64_t num_inputs = shape.dim_size(2),
                  num_gates = context->input(3).dim_size(1);
    const int64_t size = num_gates / 4;
    OSEQ_CHECK_SHAPE(context, 1, {num_rows});
    OSEQ_CHECK_SHAPE(context, 2, {num_inputs, 4 * size});
    OSEQ_CHECK_SHAPE(context, 3, {size, 4 * size});
    OSEQ_CHECK_SHAPE(context, 4, {4 * size});
    OSEQ_CHECK_SHAPE(context, 5, {num_rows, size});
    OSEQ_CHECK_SHAPE(context, 6, {num_rows, size});
    const T* inputs = DataOf<T>(context->input(0));
    const int32_t* length = DataOf<int32_t>(context->input(1));
    const T* kernel = DataOf<T>(context->input(2));
    const T* recurrent_kernel = DataOf<T>(context->input(3));
    const Eigen::ArrayXf bias =
        ConstRow<T>(DataOf<T>(context->input(4)), 4 * size).template cast<float>();
    const T* initial_h = DataOf<T>(context->input(5));
    const float* initial_c = DataOf<float>(context->input(6));
    for (int64_t row = 0; row < num_rows; ++row) {
      OP_REQUIRES(context, 0 <= length[row] && length[row] <= num_steps,
                  absl::InvalidArgumentError(
                      absl::StrCat(name(), ": row ", row, " has length ", length[row],
                                   ", but there are ", num_steps, " steps")));
    }

    Tensor* made[6];
    const TensorShape outputs_shape({num_rows, num_steps, size}),
        state_shape({num_rows, size});
    const TensorShape gates_shape({num_rows, num_steps, 4 * size});
    const TensorShape shapes[] = {outputs_shape, state_shape,   state_shape,
                                  outputs_shape, outputs_shape, gates_shape};
    for (int i = 0; i < 6; ++i) {
      OP_REQUIRES_OK(context, context->allocate_output(i, shapes[i], &made[i]));
    }
    T* outputs = DataOf<T>(made[0]);
    T* last_h = DataOf<T>(made[1]);
    float* last_c = DataOf<float>(made[2]);
    T* before = DataOf<T>(made[3]);
    float* cells = DataOf<float>(made[4]);
    float* gates = DataOf<float>(made[5]);

    // A step's totals are the product of [inputs, h] and both kernels, one above the
    // other.
    using E = Factor<T>;
    const int64_t place_of_h = RoundUp(num_inputs, kGroup<E>);
    Panels<E> panels(place_of_h + size, 4 * size);
    Shares(context, num_rows).Run([&](int64_t begin, int64_t end) {
      Rows<E> factors = Rows<E>::Zero(RoundUp(end - begin, kTileRows), panels.depth());
      Rows<float> totals(factors.rows(), panels.width());
      for (int64_t row = begin; row < end; ++row) {
        const ConstRow<T> h(initial_h + row * size, size);
        Row<T>(last_h + row * size, size) = h;
        Row<E>(&factors(row - begin, place_of_h), size) = h.template cast<E>();
        Row<float>(last_c + row * size, size) =
            ConstRow<float>(initial_c + row * size, size);
        ClearPadding(outputs, row, length[row], num_steps, size);
        ClearPadding(before, row, length[row], num_steps, size);
        ClearPadding(cells, row, length[row], num_steps, size);
        ClearPadding(gates, row, length[row], num_steps, 4 * size);
      }
      panels.FillTogether([&](int64_t p) {
        panels.SetRows(p, 0, kernel, num_inputs);
        panels.SetRows(p, place_of_h, recurrent_kernel, size);
      });
      const int64_t longest = LongestOf(length, begin, end);
      for (int64_t step = 0; step < longest; ++step) {
        for (int64_t row = begin; row < end; ++row) {
          const T* values = inputs + (row * num_steps + step) * num_inputs;
          Row<E>(&factors(row - begin, 0), num_inputs) =
              ConstRow<T>(values, num_inputs).template cast<E>();
        }
        panels.Multiply(factors.data(), factors.rows(), totals.data());
        for (int64_t row = begin; row < end; ++row) {
          const int64_t place = row * num_steps + step;
          if (row + 1 < end) {
            const int64_t next = place + num_steps;
            Prefetch(gates + next * 4 * size, 4 * size * sizeof(float));
            Prefetch(cells + next * size, size * sizeof(float));
            Prefetch(before + next * size, size * sizeof(T));
            Prefetch(outputs + next * size, size * sizeof(T));
          }
          if (step >= length[row]) continue;
          const float* total = &totals(row - begin, 0);
          float* gate = gates + place * 4 * size;
          Row<float> i(gate, size), f(gate + size, size), g(gate + 2 * size, size),
              o(gate + 3 * size, size);
          i = (ConstRow<float>(total, size) + bias.head(size)).logistic();
          f = (ConstRow<float>(total + size, size) + bias.segment(size, size))
                  .logistic();
          g = (ConstRow<float>(total + 2 * size, size) + bias.segment(2 * size, size))
                  .tanh();
          o = (ConstRow<float>(total + 3 * size, size) + bias.tail(size)).logistic();
          Row<float> c(last_c + row * size, size);
          c = f * c + i * g;
          Row<float>(cells + place * size, size) = c;
          Row<T> h(last_h + row * size, size);
          Row<T>(before + place * size, size) = h;
          h = (o * c.tanh()).template cast<T>();
          Row<T>(outputs + place * size, size) = h;
          Row<E>(&factors(row - begin, place_of_h), size) = h.template cast<E>();
        }
      }
    });
  }
};

template <typename T>
class LstmGradient : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const int32_t* length = DataOf<int32_t>(context->input(0));
    const T* kernel = DataOf<T>(context->input(1));
    const T* recurrent_kernel = DataOf<T>(context->input(2));
    const float* initial_c = DataOf<float>(context->input(3));
    const float* cells = DataOf<float>(context->input(4));
    const float* gates = DataOf<float>(context->input(5));
    const T* d_outputs = DataOf<T>(context->input(6));
    const T* d_last_h = DataOf<T>(context->input(7));
    const float* d_last_c = DataOf<float>(context->input(8));
    const TensorShape& gates_shape = context->input(5).shape();
    OP_REQUIRES(context,
                gates_shape.dims() == 3 && context->input(1).dims() == 2 &&
                    context->input(2).dims() == 2,
                absl::InvalidArgumentError(absl::StrCat(
                    name(), ": gates are not [B, T, 4 H], or kernels no matrices")));
    const int64_t num_rows = gates_shape.dim_size(0),
                  num_steps = gates_shape.dim_size(1);
    const int64_t num_inputs = context->input(1).dim_size(0);
    const int64_t size = context->input(2).dim_size(0);
    OSEQ_CHECK_SHAPE(context, 0, {num_rows});
    OSEQ_CHECK_SHAPE(context, 1, {num_inputs, 4 * size});
    OSEQ_CHECK_SHAPE(context, 2, {size, 4 * size});
    OSEQ_CHECK_SHAPE(context, 3, {num_rows, size});
    OSEQ_CHECK_SHAPE(context, 4, {num_rows, num_steps, size});
    OSEQ_CHECK_SHAPE(context, 5, {num_rows, num_steps, 4 * size});
    OSEQ_CHECK_SHAPE(context, 6, {num_rows, num_steps, size});
    OSEQ_CHECK_SHAPE(context, 7, {num_rows, size});
    OSEQ_CHECK_SHAPE(context, 8, {num_rows, size});

    Tensor* made[5];
    const TensorShape state_shape({num_rows, size});
    // In the gates' place where the type allows it: none is read after it is written.
    if (std::is_same<T, float>::value) {
      OP_REQUIRES_OK(context, context->forward_input_or_allocate_output(
                                  {5}, 0, gates_shape, &made[0]));
    } else {
      OP_REQUIRES_OK(context, context->allocate_output(0, gates_shape, &made[0]));
    }
    const TensorShape shapes[] = {gates_shape,
                                  TensorShape({num_rows, num_steps, num_inputs}),
                                  TensorShape({4 * size}), state_shape, state_shape};
    for (int i = 1; i < 5; ++i) {
      OP_REQUIRES_OK(context, context->allocate_output(i, shapes[i], &made[i]));
    }
    T* d_totals = DataOf<T>(made[0]);
    T* d_inputs = DataOf<T>(made[1]);
    T* d_initial_h = DataOf<T>(made[3]);
    float* d_initial_c = DataOf<float>(made[4]);

    using E = Factor<T>;
    Panels<E> to_inputs(4 * size, num_inputs), to_h(4 * size, size);
    const Shares shares(context, num_rows);
    // A share's sum has its own column: the whole sum has one order.
    Eigen::ArrayXXf d_bias = Eigen::ArrayXXf::Zero(4 * size, shares.number());
    shares.Run([&](int64_t begin, int64_t end) {
      Rows<E> factors = Rows<E>::Zero(RoundUp(end - begin, kTileRows), to_h.depth());
      Rows<float> d_x(factors.rows(), to_inputs.width());
      Rows<float> d_h(factors.rows(), to_h.width());
      auto d_bias_here = d_bias.col(shares.NumberOf(begin));
      const auto set_d_last_h = [&](int64_t row) {
        Row<float>(&d_h(row - begin, 0), size) =
            ConstRow<T>(d_last_h + row * size, size).template cast<float>();
      };
      for (int64_t row = begin; row < end; ++row) {
        set_d_last_h(row);
        Row<float>(d_initial_c + row * size, size) =
            ConstRow<float>(d_last_c + row * size, size);
        ClearPadding(d_totals, row, length[row], num_steps, 4 * size);
        ClearPadding(d_inputs, row, length[row], num_steps, num_inputs);
      }
      to_inputs.FillTogether(
          [&](int64_t p) { to_inputs.SetTransposed(p, kernel, 4 * size); });
      to_h.FillTogether(
          [&](int64_t p) { to_h.SetTransposed(p, recurrent_kernel, 4 * size); });
      Eigen::ArrayXf tanh_c(size), d_h_here(size), d_total(4 * size);
      for (int64_t step = LongestOf(length, begin, end) - 1; step >= 0; --step) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t place = row * num_steps + step;
          if (row + 1 < end) {
            const int64_t next = place + num_steps;
            Prefetch(gates + next * 4 * size, 4 * size * sizeof(float));
            Prefetch(cells + next * size, size * sizeof(float));
            Prefetch(d_outputs + next * size, size * sizeof(T));
            Prefetch(d_totals + next * 4 * size, 4 * size * sizeof(T));
          }
          if (step >= length[row]) continue;
          const float* gate = gates + place * 4 * size;
          const ConstRow<float> i(gate, size), f(gate + size, size),
              g(gate + 2 * size, size), o(gate + 3 * size, size);
          const ConstRow<float> c_before(
              step > 0 ? cells + (place - 1) * size : initial_c + row * size, size);
          tanh_c = ConstRow<float>(cells + place * size, size).tanh();
          d_h_here =
              ConstRow<T>(d_outputs + place * size, size).template cast<float>() +
              Row<float>(&d_h(row - begin, 0), size);
          Row<float> d_c(d_initial_c + row * size, size);
          d_c += d_h_here * o * (1 - tanh_c.square());
          d_total.head(size) = d_c * g * i * (1 - i);
          d_total.segment(size, size) = d_c * c_before * f * (1 - f);
          d_total.segment(2 * size, size) = d_c * i * (1 - g.square());
          d_total.tail(size) = d_h_here * tanh_c * o * (1 - o);
          d_c *= f;
          d_bias_here += d_total;
          Row<T> rounded(d_totals + place * 4 * size, 4 * size);
          rounded = d_total.template cast<T>();
          Row<E>(&factors(row - begin, 0), 4 * size) = rounded.template cast<E>();
        }
        to_inputs.Multiply(factors.data(), factors.rows(), d_x.data());
        to_h.Multiply(factors.data(), factors.rows(), d_h.data());
        for (int64_t row = begin; row < end; ++row) {
          if (step >= length[row]) {  // not begun yet
            set_d_last_h(row);
            continue;
          }
          Row<T>(d_inputs + (row * num_steps + step) * num_inputs, num_inputs) =
              Row<float>(&d_x(row - begin, 0), num_inputs).template cast<T>();
        }
      }
      for (int64_t row = begin; row < end; ++row) {
        Row<T>(d_initial_h + row * size, size) =
            Row<float>(&d_h(row - begin, 0), size).template cast<T>();
      }
    });
    Row<T>(DataOf<T>(made[2]), 4 * size) = d_bias.rowwise().sum().template cast<T>();
  }
};

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

absl::Status LstmShapes(InferenceContext* c) {
  ShapeHandle inputs, recurrent_kernel;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 3, &inputs));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(3), 2, &recurrent_kernel));
  const auto rows = c->Dim(inputs, 0), steps = c->Dim(inputs, 1);
  const auto size = c->Dim(recurrent_kernel, 0), gates = c->Dim(recurrent_kernel, 1);
  const ShapeHandle outputs = c->MakeShape({rows, steps, size});
  const ShapeHandle state = c->MakeShape({rows, size});
  const ShapeHandle shapes[] = {outputs, state,   state,
                                outputs, outputs, c->MakeShape({rows, steps, gates})};
  for (int i = 0; i < 6; ++i) c->set_output(i, shapes[i]);
  return absl::OkStatus();
}

absl::Status LstmGradientShapes(InferenceContext* c) {
  ShapeHandle kernel, gates;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &kernel));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(5), 3, &gates));
  const ShapeHandle inputs =
      c->MakeShape({c->Dim(gates, 0), c->Dim(gates, 1), c->Dim(kernel, 0)});
  const ShapeHandle shapes[] = {gates, inputs, c->Vector(c->Dim(kernel, 1)),
                                c->input(3), c->input(3)};
  for (int i = 0; i < 5; ++i) c->set_output(i, shapes[i]);
  return absl::OkStatus();
}

}  // namespace

// length: [B], valid steps. What lies beyond it is zero in all that is made. Outputs
// are [B, T, H]; the last h and c [B, H] are those after the last valid step. For the
// gradient there are `before` [B, T, H], the h before each step, `cells` [B, T, H], the
// c after it, and `gates` [B, T, 4 H].
REGISTER_OP("OseqLstm")
    .Attr("T: {float, bfloat16}")
    .Input("inputs: T")
    .Input("length: int32")
    .Input("kernel: T")
    .Input("recurrent_kernel: T")
    .Input("bias: T")
    .Input("initial_h: T")
    .Input("initial_c: float")
    .Output("outputs: T")
    .Output("last_h: T")
    .Output("last_c: float")
    .Output("before: T")
    .Output("cells: float")
    .Output("gates: float")
    .SetShapeFn(LstmShapes);

// `d_totals` [B, T, 4 H], of what goes into the gates, is zero beyond the lengths: both
// kernels' gradients are products with it.
REGISTER_OP("OseqLstmGradient")
    .Attr("T: {float, bfloat16}")
    .Input("length: int32")
    .Input("kernel: T")
    .Input("recurrent_kernel: T")
    .Input("initial_c: float")
    .Input("cells: float")
    .Input("gates: float")
    .Input("d_outputs: T")
    .Input("d_last_h: T")
    .Input("d_last_c: float")
    .Output("d_totals: T")
    .Output("d_inputs: T")
    .Output("d_bias: T")
    .Output("d_initial_h: T")
    .Output("d_initial_c: float")
    .SetShapeFn(LstmGradientShapes);

#define OSEQ_REGISTER(type)                                                      \
  REGISTER_KERNEL_BUILDER(                                                       \
      Name("OseqLstm").Device(tensorflow::DEVICE_CPU).TypeConstraint<type>("T"), \
      Lstm<type>);                                                               \
  REGISTER_KERNEL_BUILDER(Name("OseqLstmGradient")                               \
                              .Device(tensorflow::DEVICE_CPU)                    \
                              .TypeConstraint<type>("T"),                        \
                          LstmGradient<type>)
OSEQ_REGISTER(float);
OSEQ_REGISTER(bfloat16);

}  // namespace oseq

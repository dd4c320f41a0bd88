// Batch normalization of channels-last activations, with what follows it. Compiled at run time (kernels/fused_norm.cpp)
// for one type of values, Half, BFloat or Float, which the macro VALUE names. Sums are in float and have a fixed order.
//
// A block has 8 x 32 threads: in x, each thread has 8 neighbouring channels; in y, every 32nd row. Blocks in y share
// the rows.

constexpr int kVector = 8, kLanes = 8, kRows = 32;
constexpr int kRelu = 1, kSilu = 2;

struct Half {
  unsigned short bits;
  __device__ float get() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
  __device__ void set(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
};

struct BFloat {
  unsigned short bits;
  __device__ float get() const { return __uint_as_float(unsigned(bits) << 16); }
  __device__ void set(float value) {  // to nearest even
    const unsigned all = __float_as_uint(value);
    bits = value != value ? 0x7fff : (all + 0x7fff + (all >> 16 & 1)) >> 16;
  }
};

struct Float {
  float value;
  __device__ float get() const { return value; }
  __device__ void set(float other) { value = other; }
};

using Value = VALUE;

// Of kernels: none of them overlaps another that is written.
using Input = const Value* __restrict__;
using Output = Value* __restrict__;
using Numbers = const float* __restrict__;
using Results = float* __restrict__;

struct __align__(16) Packed {
  Value values[kVector];
};

struct Floats {
  float v[kVector];
};

__device__ Floats load(const Value* from) {
  const Packed packed = *reinterpret_cast<const Packed*>(from);
  Floats all;
  for (int i = 0; i < kVector; ++i) all.v[i] = packed.values[i].get();
  return all;
}

__device__ void store(Value* to, const Floats& all) {
  Packed packed;
  for (int i = 0; i < kVector; ++i) packed.values[i].set(all.v[i]);
  *reinterpret_cast<Packed*>(to) = packed;
}

struct Channel {
  float mean, inv_std, weight, bias;
  __device__ float normalized(float x) const { return (x - mean) * inv_std; }
  __device__ float affine(float x) const { return normalized(x) * weight + bias; }
};

struct Parameters {
  Numbers mean, inv_std, weight, bias;
  __device__ Channel at(int channel) const { return {mean[channel], inv_std[channel], weight[channel], bias[channel]}; }
};

__device__ int first_channel() { return (blockIdx.x * kLanes + threadIdx.x) * kVector; }
__device__ long first_row() { return long(blockIdx.y) * kRows + threadIdx.y; }
__device__ long row_step() { return long(gridDim.y) * kRows; }

__device__ float activate(float z, int activation) {
  if (activation == kRelu) return z > 0 || z != z ? z : 0;
  if (activation == kSilu) return z / (1 + __expf(-z));
  return z;
}

__device__ float slope(float z, int activation) {
  if (activation == kRelu) return z > 0 ? 1 : 0;
  if (activation != kSilu) return 1;
  const float gate = 1 / (1 + __expf(-z));
  return gate * (1 + z * (1 - gate));
}

// Adds two numbers per channel over the rows of a block and writes them to sums[block][2][channels].
__device__ void write_block_sums(const Floats& first, const Floats& second, int channels, float* sums) {
  __shared__ float shared[2][kRows][kLanes * kVector];
  for (int i = 0; i < kVector; ++i) {
    shared[0][threadIdx.y][threadIdx.x * kVector + i] = first.v[i];
    shared[1][threadIdx.y][threadIdx.x * kVector + i] = second.v[i];
  }
  __syncthreads();
  const int thread = threadIdx.y * kLanes + threadIdx.x, which = thread / (kLanes * kVector),
            column = thread % (kLanes * kVector);
  const int channel = blockIdx.x * kLanes * kVector + column;
  if (which > 1 || channel >= channels) return;
  float sum = 0;
  for (int row = 0; row < kRows; ++row) sum += shared[which][row][column];
  sums[(long(blockIdx.y) * 2 + which) * channels + channel] = sum;
}

// The sums over blocks of one channel, for a block of 32 channels x 32 threads; only the first thread of a channel has
// them.
struct Pair {
  float first = 0, second = 0;
};

__device__ Pair add_blocks(const float* sums, int blocks, int channels, int channel) {
  __shared__ Pair shared[32][33];
  Pair pair;
  for (int block = threadIdx.y; block < blocks && channel < channels; block += 32) {
    pair.first += sums[long(block) * 2 * channels + channel];
    pair.second += sums[(long(block) * 2 + 1) * channels + channel];
  }
  shared[threadIdx.y][threadIdx.x] = pair;
  __syncthreads();
  if (threadIdx.y == 0) {
    for (int other = 1; other < 32; ++other) {
      pair.first += shared[other][threadIdx.x].first;
      pair.second += shared[other][threadIdx.x].second;
    }
  }
  return pair;
}

// Sums of x - k and of (x - k)^2, where k is the first value of the channel: near the mean, so that nothing cancels
// out.
extern "C" __global__ void sum_values(Input x, long rows, int channels, Results sums) {
  const int channel = first_channel();
  Floats sum = {}, squares = {};
  if (channel < channels) {
    const Floats origin = load(x + channel);
#pragma unroll 4
    for (long row = first_row(); row < rows; row += row_step()) {
      const Floats values = load(x + row * channels + channel);
      for (int i = 0; i < kVector; ++i) {
        const float difference = values.v[i] - origin.v[i];
        sum.v[i] += difference;
        squares.v[i] += difference * difference;
      }
    }
  }
  write_block_sums(sum, squares, channels, sums);
}

// moments: means, sums of squared deviations, and the number of rows. Where they are wanted, also 1 / sqrt(variance +
// eps) and the new running statistics.
extern "C" __global__ void finish_moments(Input x, Numbers sums, int blocks, long rows, int channels, Results moments,
                                          Results inv_std, float eps, Results running_mean, Results running_var,
                                          float momentum) {
  const int channel = blockIdx.x * 32 + threadIdx.x;
  const Pair pair = add_blocks(sums, blocks, channels, channel);
  if (threadIdx.y > 0 || channel >= channels) return;
  const float mean = x[channel].get() + pair.first / rows;
  const float squares = fmaxf(pair.second - pair.first * (pair.first / rows), 0);
  moments[channel] = mean;
  moments[channels + channel] = squares;
  if (channel == 0) moments[2 * channels] = rows;
  if (inv_std != nullptr) inv_std[channel] = rsqrtf(squares / rows + eps);
  if (running_mean == nullptr) return;
  running_mean[channel] += momentum * (mean - running_mean[channel]);
  running_var[channel] += momentum * (squares / (rows - 1) - running_var[channel]);
}

// y = activation(batch norm of x + shortcut); the shortcut may be missing.
extern "C" __global__ void normalize(Input x, Input shortcut, Parameters parameters, long rows, int channels,
                                     int activation, Output y) {
  const int channel = first_channel();
  if (channel >= channels) return;
  Channel own[kVector];
  for (int i = 0; i < kVector; ++i) own[i] = parameters.at(channel + i);
#pragma unroll 2
  for (long row = first_row(); row < rows; row += row_step()) {
    const long place = row * channels + channel;
    Floats values = load(x + place);
    Floats added = {};
    if (shortcut != nullptr) added = load(shortcut + place);
    for (int i = 0; i < kVector; ++i) values.v[i] = activate(own[i].affine(values.v[i]) + added.v[i], activation);
    store(y + place, values);
  }
}

// The gradient before the activation. With a shortcut the activation is ReLU or none, and `y` says where it was above
// 0.
__device__ void before_activation(Floats& grad, const Floats& x, const Value* y, long place, const Channel* own,
                                  int activation) {
  if (y != nullptr) {
    const Floats outputs = load(y + place);
    for (int i = 0; i < kVector; ++i) grad.v[i] *= slope(outputs.v[i], activation);
  } else {
    for (int i = 0; i < kVector; ++i) grad.v[i] *= slope(own[i].affine(x.v[i]), activation);
  }
}

// The sums of the gradient and of its product with the normalized x: the gradients of bias and weight.
extern "C" __global__ void sum_gradients(Input x, Input y, Input y_grad, Parameters parameters, long rows, int channels,
                                         int activation, Results sums) {
  const int channel = first_channel();
  Floats sum = {}, products = {};
  if (channel < channels) {
    Channel own[kVector];
    for (int i = 0; i < kVector; ++i) own[i] = parameters.at(channel + i);
#pragma unroll 2
    for (long row = first_row(); row < rows; row += row_step()) {
      const long place = row * channels + channel;
      const Floats values = load(x + place);
      Floats grad = load(y_grad + place);
      before_activation(grad, values, y, place, own, activation);
      for (int i = 0; i < kVector; ++i) {
        sum.v[i] += grad.v[i];
        products.v[i] += grad.v[i] * own[i].normalized(values.v[i]);
      }
    }
  }
  write_block_sums(sum, products, channels, sums);
}

// totals[2][channels]
extern "C" __global__ void finish_sums(Numbers sums, int blocks, int channels, Results totals) {
  const int channel = blockIdx.x * 32 + threadIdx.x;
  const Pair pair = add_blocks(sums, blocks, channels, channel);
  if (threadIdx.y > 0 || channel >= channels) return;
  totals[channel] = pair.first;
  totals[channels + channel] = pair.second;
}

// `totals`: as above, over all `count` values of a channel. The gradient of the shortcut, where it is wanted, is that
// before the activation.
extern "C" __global__ void input_gradient(Input x, Input y, Input y_grad, Parameters parameters, Numbers totals,
                                          Numbers count, long rows, int channels, int activation, Output x_grad,
                                          Output shortcut_grad) {
  const int channel = first_channel();
  if (channel >= channels) return;
  Channel own[kVector];
  Floats mean_grad, mean_product;
  for (int i = 0; i < kVector; ++i) {
    own[i] = parameters.at(channel + i);
    mean_grad.v[i] = totals[channel + i] / *count;
    mean_product.v[i] = totals[channels + channel + i] / *count;
  }
#pragma unroll 2
  for (long row = first_row(); row < rows; row += row_step()) {
    const long place = row * channels + channel;
    Floats values = load(x + place);
    Floats grad = load(y_grad + place);
    before_activation(grad, values, y, place, own, activation);
    if (shortcut_grad != nullptr) store(shortcut_grad + place, grad);
    for (int i = 0; i < kVector; ++i) {
      const float centred = grad.v[i] - mean_grad.v[i] - own[i].normalized(values.v[i]) * mean_product.v[i];
      values.v[i] = own[i].weight * own[i].inv_std * centred;
    }
    store(x_grad + place, values);
  }
}

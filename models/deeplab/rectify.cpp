#include "models/deeplab/rectify.h"

#include <ATen/OpMathType.h>
#include <tandem/error.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/no_autocast.h"

namespace tandem {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Elements of the attention matrix at a time: of a GPU many, on a CPU what fits into the cache.
std::int64_t matrix_elements(const Tensor& x) { return std::int64_t{1} << (x.is_cuda() ? 25 : 20); }

// Rows of length 1, or of zeros.
struct UnitRows {
  explicit UnitRows(const Tensor& rows) {
    const Tensor norm = at::linalg_vector_norm(rows, 2, 1, /*keepdim=*/true, at::toOpMathType(rows.scalar_type()));
    factor = torch::where(norm > 0, norm.reciprocal(), torch::zeros_like(norm));
    unit = (rows * factor).to(rows.scalar_type());
  }

  // The gradient of the rows from that of the unit rows.
  Tensor backward(const Tensor& grad) const { return (grad - unit * (unit * grad).sum(1, /*keepdim=*/true)) * factor; }

  Tensor factor;
  Tensor unit;
};

// Followed by zeros, so that a matrix with a column for each row has aligned rows: without, cuBLAS takes five times as
// long in 16 bits.
Tensor aligned(const Tensor& rows) {
  const std::int64_t missing = rows.is_cuda() ? -rows.size(0) & 7 : 0;
  return missing == 0 ? rows : torch::constant_pad_nd(rows, {0, 0, 0, missing});
}

void add_matrix_product(const Tensor& sum, const Tensor& left, const Tensor& right) {
  if (sum.scalar_type() == left.scalar_type()) {
    sum.addmm_(left, right);
  } else {
    sum.add_(left.mm(right));
  }
}

// The attention of the foreground of one image.
class Attention {
 public:
  Attention(const Tensor& query, const Tensor& key, const Tensor& x)
      : query_(query), key_(aligned(key)), x_(aligned(x)), num_keys_(x.size(0)) {}

  // For each query, the average of x.
  Tensor averages() const {
    std::vector<Tensor> parts;
    for_blocks([&](std::int64_t begin, std::int64_t count) { parts.push_back(matrix(begin, count).mm(x_)); });
    return torch::cat(parts);
  }

  struct Grads {
    Tensor query;
    Tensor key;
  };
  // Adds the gradient of x to `x_grad`. `grad` is that of the averages, `dots` its inner products with them.
  Grads backward(const Tensor& grad, const Tensor& dots, Tensor& x_grad) const {
    const Tensor query_grad = torch::empty_like(query_.unit);
    const Tensor key_grad = torch::zeros_like(key_.unit, dots.options());
    for_blocks([&](std::int64_t begin, std::int64_t count) {
      const Tensor rows = grad.narrow(0, begin, count);
      const Tensor attention = matrix(begin, count);
      add_matrix_product(x_grad, attention.narrow(1, 0, num_keys_).t(), rows);
      const Tensor score_grad =
          rows.mm(x_.t()).sub_(dots.narrow(0, begin, count)).mul_(attention);  // of the softmax's input
      query_grad.narrow(0, begin, count).copy_(score_grad.mm(key_.unit));
      add_matrix_product(key_grad, score_grad.t(), query_.unit.narrow(0, begin, count));
    });
    return {query_.backward(query_grad), key_.backward(key_grad.to(key_.unit.scalar_type())).narrow(0, 0, num_keys_)};
  }

 private:
  Tensor matrix(std::int64_t begin, std::int64_t count) const {
    const Tensor scores = query_.unit.narrow(0, begin, count).mm(key_.unit.t());
    scores.narrow(1, num_keys_, scores.size(1) - num_keys_).fill_(-std::numeric_limits<double>::infinity());
    return scores.softmax(1);
  }

  template <class Body>
  void for_blocks(const Body& body) const {
    const std::int64_t total = query_.unit.size(0);
    const std::int64_t block = std::max<std::int64_t>(1, matrix_elements(x_) / std::max<std::int64_t>(1, x_.size(0)));
    for (std::int64_t begin = 0; begin < total; begin += block) body(begin, std::min(block, total - begin));
  }

  UnitRows query_;
  UnitRows key_;
  Tensor x_;
  std::int64_t num_keys_;  // without the zeros that follow
};

// The foreground positions of each image, which lie one after the other in `rows`.
class Foreground {
 public:
  Foreground(const Tensor& rows, const std::vector<std::int64_t>& counts, std::int64_t positions) {
    for (std::size_t image = 0; image < counts.size(); ++image) {
      const std::int64_t begin = image == 0 ? 0 : ends_.back();
      ends_.push_back(begin + counts[image]);
      positions_.push_back(rows.narrow(0, begin, counts[image]) - static_cast<std::int64_t>(image) * positions);
    }
  }

  const Tensor& positions(std::int64_t image) const { return positions_[image]; }
  bool is_empty(std::int64_t image) const { return positions_[image].size(0) == 0; }

  // What belongs to an image of a tensor with a row for each foreground position.
  Tensor of(const Tensor& tensor, std::int64_t image) const {
    const std::int64_t count = positions_[image].size(0);
    return tensor.narrow(0, ends_[image] - count, count);
  }

 private:
  std::vector<Tensor> positions_;
  std::vector<std::int64_t> ends_;
};

class RectificationLoss : public torch::autograd::Function<RectificationLoss> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& x, const Tensor& query, const Tensor& key,
                               const Tensor& gamma, const Tensor& rows, const std::vector<std::int64_t>& counts) {
    const NoAutocast plain(x.device().type());
    const Foreground foreground(rows, counts, x.size(1));
    const auto exact = at::toOpMathType(x.scalar_type());
    Tensor sum = torch::zeros({}, x.options().dtype(exact));
    Tensor count = torch::zeros({}, x.options().dtype(torch::kLong));
    const Tensor averages = torch::empty_like(query);
    for (std::int64_t image = 0; image < x.size(0); ++image) {
      Tensor difference = x[image].to(exact, /*non_blocking=*/false, /*copy=*/true);
      if (!foreground.is_empty(image)) {
        const Attention attention(foreground.of(query, image), key[image], x[image].to(key.scalar_type()));
        const Tensor average = foreground.of(averages, image).copy_(attention.averages());
        difference.index_add_(0, foreground.positions(image), average.to(exact) * gamma, -1);
      }
      difference.square_();
      sum += difference.sum();
      count += difference.count_nonzero();
    }
    context->save_for_backward({x, query, key, gamma, rows, averages});
    context->saved_data["counts"] = counts;
    context->mark_non_differentiable({count});
    return {sum, count};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (torch::GradMode::is_enabled()) {
      fail(ErrorKind::Config, "rectification: double backward (create_graph) is not supported",
           "differentiate the LoRM loss once");
    }
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &query = saved[1], &key = saved[2], &gamma = saved[3], &averages = saved[5];
    const NoAutocast plain(x.device().type());
    const Foreground foreground(saved[4], context->saved_data["counts"].toIntVector(), x.size(1));
    const auto exact = at::toOpMathType(x.scalar_type());
    const Tensor slope = 2 * grads[0];
    const Tensor x_grad = torch::empty_like(x), query_grad = torch::empty_like(query),
                 key_grad = torch::zeros_like(key);
    Tensor gamma_grad = torch::zeros({1}, x.options().dtype(exact));
    for (std::int64_t image = 0; image < x.size(0); ++image) {
      Tensor grad = x[image].to(exact) * slope;
      if (!foreground.is_empty(image)) {
        const Tensor& positions = foreground.positions(image);
        const Tensor average = foreground.of(averages, image).to(exact);
        grad.index_add_(0, positions, average * gamma * slope, -1);
        const Tensor average_grad = grad.index_select(0, positions).neg_();  // but for gamma
        const Tensor dots = (average_grad * average).sum(1, /*keepdim=*/true);
        gamma_grad += dots.sum();
        const Attention attention(foreground.of(query, image), key[image], x[image].to(key.scalar_type()));
        const auto parts = attention.backward((average_grad * gamma).to(key.scalar_type()), dots * gamma, grad);
        foreground.of(query_grad, image).copy_(parts.query);
        key_grad[image].copy_(parts.key);
      }
      x_grad[image].copy_(grad);
    }
    return {x_grad, query_grad, key_grad, gamma_grad.to(gamma.scalar_type()), Tensor(), Tensor()};
  }
};

}  // namespace

SumAndCount rectification(const Rectification& given) {
  const variable_list result =
      RectificationLoss::apply(given.features, given.query, given.key, given.gamma, given.rows, given.counts);
  return {result[0], result[1]};
}

}  // namespace tandem

#include "monitor/model_size.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "monitor/numbers.h"

namespace tandem {
namespace {

std::string trainable_text(std::int64_t num_trainable, std::int64_t num_parameters) {
  if (num_trainable == num_parameters) return "all trainable";
  return num_trainable == 0 ? "none trainable" : str(short_count(static_cast<double>(num_trainable)), " trainable");
}

std::string part_line(const ModelPart& part, std::size_t name_width) {
  return str(pad_right(part.name, name_width), pad_left(short_count(static_cast<double>(part.num_parameters)), 12),
             pad_left(short_count(static_cast<double>(part.num_trainable)), 11), pad_left(short_bytes(part.size), 10),
             '\n');
}

}  // namespace

ModelSize& ModelSize::operator+=(const ModelSize& other) {
  num_parameters += other.num_parameters;
  num_trainable += other.num_trainable;
  weights.count += other.weights.count;
  gradients.count += other.gradients.count;
  optimizer.count += other.optimizer.count;
  buckets.count += other.buckets.count;
  return *this;
}

Bytes ModelSize::total() const { return {weights.count + gradients.count + optimizer.count + buckets.count}; }

std::string ModelSize::text() const {
  std::vector<std::string> holdings;
  for (const auto& [name, size] : {std::pair{"weights", weights}, std::pair{"gradients", gradients},
                                   std::pair{"optimizer", optimizer}, std::pair{"buckets", buckets}}) {
    if (size.count > 0) holdings.push_back(str(name, ' ', short_bytes(size)));
  }
  return str(short_count(static_cast<double>(num_parameters)), " parameters, ",
             trainable_text(num_trainable, num_parameters), "; ", short_bytes(total()),
             " a rank: ", join(holdings, ", "));
}

std::string model_table(std::span<const ModelPart> parts) {
  ModelPart whole{.name = "all", .num_parameters = 0, .num_trainable = 0, .size = {}};
  std::size_t name_width = std::string_view("part").size();
  for (const ModelPart& part : parts) {
    name_width = std::max(name_width, part.name.size());
    whole.num_parameters += part.num_parameters;
    whole.num_trainable += part.num_trainable;
    whole.size.count += part.size.count;
  }
  std::string table = str(pad_right("part", name_width), "  parameters  trainable      size\n");
  for (const ModelPart& part : parts) table += part_line(part, name_width);
  return table + part_line(whole, name_width);
}

}  // namespace tandem

#include "ddp/buffer_sync.h"

#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

namespace tandem {
namespace {

using torch::Tensor;

constexpr std::int64_t kPieceBytes = 25 << 20;

// Elements [begin, end) of the concatenated tensors, as views of them.
std::vector<Tensor> parts_between(std::span<const Tensor> tensors, std::int64_t begin, std::int64_t end) {
  std::vector<Tensor> parts;
  std::int64_t at = 0;
  for (const Tensor& tensor : tensors) {
    const std::int64_t from = std::max(begin, at);
    const std::int64_t to = std::min(end, at + tensor.numel());
    if (from < to) parts.push_back(tensor.narrow(0, from - at, to - from));
    at += tensor.numel();
  }
  return parts;
}

using Collective = std::function<Work(const Tensor& flat)>;

// Runs a collective on the concatenation of 1-D tensors of one type, in pieces of kPieceBytes.
void run_in_pieces(std::span<const Tensor> tensors, Communicator& comm, const Collective& collective) {
  std::int64_t count = 0;
  for (const Tensor& tensor : tensors) count += tensor.numel();
  if (count == 0) return;

  const std::int64_t size = std::min(count, kPieceBytes / tensors.front().element_size());
  const Tensor memory = comm.empty(size, tensors.front().options());
  for (std::int64_t begin = 0; begin < count; begin += size) {
    const std::int64_t end = std::min(count, begin + size);
    const std::vector<Tensor> parts = parts_between(tensors, begin, end);
    std::vector<std::int64_t> sizes;
    for (const Tensor& part : parts) sizes.push_back(part.numel());

    Tensor flat = memory.narrow(0, 0, end - begin);
    torch::cat_out(flat, parts);
    collective(flat).wait();
    torch::_foreach_copy_(parts, flat.split_with_sizes(sizes));
  }
}

// The same for tensors of any shape, viewed as elements of `type`.
void run_together(std::span<const Tensor> tensors, torch::ScalarType type, Communicator& comm,
                  const Collective& collective) {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> dense;
  std::vector<Tensor> flat;
  for (const Tensor& tensor : tensors) {
    dense.push_back(tensor.detach().contiguous());
    flat.push_back(dense.back().reshape(-1).view(type));
  }
  run_in_pieces(flat, comm, collective);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].is_contiguous()) tensors[i].detach().copy_(dense[i]);
  }
}

void average_together(std::span<const Tensor> tensors, Communicator& comm) {
  std::map<torch::ScalarType, std::vector<Tensor>> by_type;
  for (const Tensor& tensor : tensors) by_type[tensor.scalar_type()].push_back(tensor);
  for (const auto& [type, same] : by_type) {
    run_together(same, type, comm,
                 [&](const Tensor& flat) { return comm.all_reduce(flat, ReduceOp::Sum, comm.world().size); });
  }
}

}  // namespace

void broadcast_together(std::span<const Tensor> tensors, Communicator& comm) {
  run_together(tensors, torch::kByte, comm, [&](const Tensor& flat) { return comm.broadcast(flat); });
}

void sync_buffers(std::span<const Tensor> buffers, BufferSync how, Communicator& comm) {
  if (how == BufferSync::Off) return;
  std::vector<Tensor> averaged;
  std::vector<Tensor> copied;
  for (const Tensor& buffer : buffers) {
    const bool is_averaged = how == BufferSync::Average && buffer.is_floating_point();
    (is_averaged ? averaged : copied).push_back(buffer);
  }
  average_together(averaged, comm);
  broadcast_together(copied, comm);
}

}  // namespace tandem

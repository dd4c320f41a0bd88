#include <tandem/ddp.h>
#include <tandem/error.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr std::int64_t kPiece = 1 << 18;  // elements; limits the size of temporaries
constexpr std::int64_t kOdd = 0x5851F42D4C957F2D;

// The tensor as integers of at most 32 bits: multiplied by an odd number, each bit affects the 64-bit sum.
Tensor bits_of(const Tensor& tensor) {
  const Tensor flat = tensor.detach().contiguous().reshape(-1);
  const bool is_wide = flat.element_size() >= 4;
  return flat.view(is_wide ? torch::kInt : flat.element_size() == 2 ? torch::kShort : torch::kByte);
}

// Pseudo-random odd weights, one per position in a piece.
Tensor place_weights(torch::Device device) {
  const Tensor place = torch::arange(1, kPiece + 1, torch::TensorOptions(torch::kLong).device(device)) * kOdd;
  return torch::bitwise_xor(place, torch::bitwise_right_shift(place, 29)).mul_(kOdd).bitwise_or_(1);
}

// A hash of the bits, computed on the device of the tensor. A single changed bit always changes the hash.
Tensor hash_of(const Tensor& tensor, const Tensor& weights) {
  const Tensor bits = bits_of(tensor);
  Tensor hash = torch::zeros({}, weights.options());
  for (std::int64_t begin = 0; begin < bits.numel(); begin += kPiece) {
    const std::int64_t count = std::min(kPiece, bits.numel() - begin);
    const Tensor piece = bits.narrow(0, begin, count).to(torch::kLong);
    hash = hash * kOdd + (piece * weights.narrow(0, 0, count)).sum();
  }
  return hash;
}

std::vector<std::pair<std::string, Tensor>> named_tensors(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, Tensor>> all;
  for (const auto& [name, tensor] : module.named_parameters().pairs()) all.emplace_back("parameter " + name, tensor);
  for (const auto& [name, tensor] : module.named_buffers().pairs()) all.emplace_back("buffer " + name, tensor);
  return all;
}

void check_same_count(const std::vector<std::string>& hashes) {
  for (std::size_t rank = 1; rank < hashes.size(); ++rank) {
    if (hashes[rank].size() == hashes[0].size()) continue;
    fail(ErrorKind::Data,
         str("check_replicas: the module has ", hashes[0].size() / 8, " tensors on rank 0, and ",
             hashes[rank].size() / 8, " on rank ", rank),
         "pass the same module on every rank");
  }
}

struct Agreement {
  std::vector<int> most;
  std::vector<int> others;
};

// The ranks with the most common hash (in a tie, that of the lowest rank), and the others.
Agreement compare(const std::vector<std::string_view>& hashes) {
  std::map<std::string_view, int> votes;
  for (const std::string_view hash : hashes) ++votes[hash];
  const auto by_votes = [&](std::string_view a, std::string_view b) { return votes[a] < votes[b]; };
  const std::string_view winner = *std::max_element(hashes.begin(), hashes.end(), by_votes);
  Agreement agreement;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    (hashes[rank] == winner ? agreement.most : agreement.others).push_back(static_cast<int>(rank));
  }
  return agreement;
}

}  // namespace

void check_replicas(const torch::nn::Module& module, Communicator& comm) {
  const torch::NoGradGuard no_grad;
  const auto tensors = named_tensors(module);
  if (tensors.empty()) return;
  const Tensor weights = place_weights(tensors.front().second.device());
  std::vector<Tensor> hashes;
  for (const auto& [name, tensor] : tensors) hashes.push_back(hash_of(tensor, weights));
  const Tensor mine = torch::stack(hashes).cpu();

  const std::string_view bytes(static_cast<const char*>(mine.const_data_ptr()), mine.nbytes());
  const std::vector<std::string> all = comm.all_gather_bytes(bytes);
  check_same_count(all);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::vector<std::string_view> of_ranks;
    for (const std::string& theirs : all) of_ranks.push_back(std::string_view(theirs).substr(i * 8, 8));
    const Agreement agreement = compare(of_ranks);
    if (agreement.others.empty()) continue;
    fail(ErrorKind::Data,
         str("check_replicas: ", tensors[i].first, " has other bits on ", ranks_text(agreement.others), " than on ",
             ranks_text(agreement.most)),
         "look for work that only some ranks do (an optimizer step, clipping, loading weights) and for random numbers "
         "that differ between ranks");
  }
}

}  // namespace tandem

#include "comm/shm/posting.h"

#include <bit>
#include <string_view>

#include "base/text.h"

namespace tandem {
namespace {

template <class Enum, std::size_t N>
std::string_view enum_name(Enum value, const std::array<const char*, N>& names) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : "?";  // another rank may have written anything
}

constexpr std::array kCollectives = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "barrier"};
constexpr std::array kTypes = {"float", "double", "half", "bfloat16", "int", "long", "uint8"};
constexpr std::array kElementOps = {"sum", "min", "max"};

}  // namespace

bool Posting::agrees_with(const Posting& other) const {
  Posting there = other;
  there.offset = offset;
  return pack(*this) == pack(there);
}

std::string Posting::text() const {
  std::string text(enum_name(collective, kCollectives));
  if (collective == Collective::AllReduce || collective == Collective::ReduceScatter) {
    text += str(" (", enum_name(op, kElementOps), divisor == 1 ? "" : str(" divided by ", divisor), ')');
  }
  if (collective != Collective::Barrier) text += str(" of ", count, ' ', enum_name(type, kTypes), " elements");
  if (collective == Collective::Broadcast) text += str(" from rank ", root);
  if (step >= 0) text += str(" in step ", step);
  return text;
}

PostingWords pack(const Posting& posting) {
  const std::uint64_t kinds =
      static_cast<std::uint64_t>(posting.collective) | static_cast<std::uint64_t>(posting.type) << 8U |
      static_cast<std::uint64_t>(posting.op) << 16U | static_cast<std::uint64_t>(posting.root) << 32U;
  return {kinds, posting.count, std::bit_cast<std::uint64_t>(posting.divisor), static_cast<std::uint64_t>(posting.step),
          posting.offset};
}

Posting unpack(const PostingWords& words) {
  const std::uint64_t kinds = words[0];
  return {.collective = static_cast<Collective>(kinds & 0xffU),
          .type = static_cast<ElementType>(kinds >> 8U & 0xffU),
          .op = static_cast<ElementOp>(kinds >> 16U & 0xffU),
          .root = static_cast<int>(kinds >> 32U),
          .count = words[1],
          .divisor = std::bit_cast<double>(words[2]),
          .step = static_cast<std::int64_t>(words[3]),
          .offset = words[4]};
}

}  // namespace tandem

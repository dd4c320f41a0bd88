#include "text/special_finder.h"

#include <algorithm>
#include <tuple>

namespace tandem {

SpecialFinder::SpecialFinder(const Vocabulary& vocabulary, std::string_view text) : text_(text) {
  for (const TokenId id : vocabulary.specials) {
    const std::string_view name = vocabulary.tokens[static_cast<std::size_t>(id)];
    specials_.push_back({.id = id, .name = name, .at = text.find(name)});
  }
}

std::optional<SpecialFinder::Found> SpecialFinder::next(std::size_t from) {
  for (Special& special : specials_) {
    if (special.at < from) special.at = text_.find(special.name, from);
  }
  std::erase_if(specials_, [](const Special& special) { return special.at == std::string_view::npos; });
  const auto first = std::ranges::min_element(specials_, {}, [](const Special& special) {
    return std::tuple(special.at, ~special.name.size());  // the longest at that position
  });
  if (first == specials_.end()) return std::nullopt;
  return Found{.at = first->at, .id = first->id};
}

}  // namespace tandem

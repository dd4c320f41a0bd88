#include "recipes/segment/guide_flags.h"

#include <tandem/error.h>

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"

namespace tandem::segment {
namespace {

using Words = std::vector<std::string>;

// What a flag with that value becomes.
using Translation = std::function<Words(const std::string& value)>;

struct GuideFlag {
  bool has_value = true;
  Translation translate;
};

Words nothing(const std::string&) { return {}; }

Translation renamed(const std::string& flag) {
  return [flag](const std::string& value) { return Words{str("--", flag), value}; };
}

Translation accepted_at(const std::string& flag, const std::string& only, const std::string& hint) {
  return [=](const std::string& value) -> Words {
    if (value == only) return {};
    fail(ErrorKind::Usage, str("--", flag, " is ", value, ", and only ", only, " is supported"), hint);
  };
}

// "cuda" means the GPUs that there are, "cuda:1" the one of that number.
Words device_words(const std::string& value) {
  constexpr std::string_view kCuda = "cuda";
  if (value == kCuda) return {"--device", "auto"};
  if (value.starts_with("cuda:")) return {"--device", value.substr(kCuda.size() + 1)};
  return {"--device", value};
}

Words init_words(const std::string& value) {
  return value == "None" || value.empty() ? Words() : Words{"--init", value};
}

// Without a launcher this is the guide's single-process debug line: one rank, however many GPUs there are.
Translation local_rank(bool is_worker) {
  return [is_worker](const std::string& value) {
    return is_worker || value.starts_with("-") ? Words() : Words{"--nproc", "1"};
  };
}

std::map<std::string, GuideFlag> guide_flags(bool is_worker) {
  return {
      {"batchsize", {true, renamed("batch-size")}},
      {"logdir", {true, renamed("run-dir")}},
      {"device", {true, device_words}},
      {"model-path", {true, init_words}},
      {"distributed", {false, nothing}},
      {"local-rank", {true, local_rank(is_worker)}},
      {"world-size", {true, nothing}},
      {"dist-url", {true, accepted_at("dist_url", "env://", "ranks meet as the launcher tells them: leave it out")}},
      {"shrink-factor",
       {true, accepted_at("shrink_factor", "1", "give the networks smaller images with --crop instead")}}};
}

// "--dist_url=env://" as name and value.
struct FlagWord {
  std::string name;  // with dashes
  std::optional<std::string> value;
};

FlagWord parse_flag(const std::string& word) {
  const std::size_t end = word.find('=');
  const std::string name = replace_all(word.substr(2, end == std::string::npos ? end : end - 2), "_", "-");
  if (end == std::string::npos) return {name, std::nullopt};
  return {name, word.substr(end + 1)};
}

}  // namespace

Words translate_guide_flags(const Words& words, std::size_t first_flag, bool is_worker) {
  const auto known = guide_flags(is_worker);
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(first_flag);
  Words result(words.begin(), begin);
  for (auto word = begin; word != words.end(); ++word) {
    const bool is_flag = word->starts_with("--") && word->size() > 2;
    const FlagWord flag = is_flag ? parse_flag(*word) : FlagWord();
    const auto entry = known.find(flag.name);
    const bool takes_next = is_flag && entry != known.end() && entry->second.has_value && !flag.value;
    if (entry == known.end() || (takes_next && word + 1 == words.end())) {
      result.push_back(*word);
      continue;
    }
    const Words ours = entry->second.translate(takes_next ? *++word : flag.value.value_or(""));
    result.insert(result.end(), ours.begin(), ours.end());
  }
  return result;
}

}  // namespace tandem::segment

#include "recipes/segment/guide_flags.h"

#include <tandem/error.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/text.h"
#include "monitor/numbers.h"

namespace tandem::segment {
namespace {

using Words = std::vector<std::string>;

// A flag as it was typed: "--dist_url", "env://".
struct TypedFlag {
  std::string flag;
  std::string value;
};

// What a flag becomes, and how many ranks it asks for without a launcher.
using Translation = std::function<Words(const TypedFlag& typed)>;
using RankCount = std::function<std::optional<std::int64_t>(const TypedFlag& typed)>;

struct GuideFlag {
  std::string help;
  Translation translate;
  bool has_value = true;
  RankCount ranks = {};
};

std::int64_t integer_of(const TypedFlag& typed, const std::string& example) {
  if (const auto number = to_integer(typed.value)) return *number;
  fail(ErrorKind::Usage, str(typed.flag, " is '", typed.value, "', which is not an integer"),
       str("such as ", typed.flag, ' ', example));
}

Words nothing(const TypedFlag&) { return {}; }

Words batch_size(const TypedFlag& typed) {
  if (integer_of(typed, "8") >= 1) return {"--batch-size", typed.value};
  fail(ErrorKind::Usage, str(typed.flag, " is ", typed.value, ", less than 1"), str("such as ", typed.flag, " 8"));
}

Words run_dir(const TypedFlag& typed) { return {"--run-dir", typed.value}; }

Words init(const TypedFlag& typed) {
  return typed.value == "None" || typed.value.empty() ? Words() : Words{"--init", typed.value};
}

Words device(const TypedFlag& typed) {
  constexpr std::string_view kNumbered = "cuda:";
  return {"--device", typed.value.substr(typed.value.starts_with(kNumbered) ? kNumbered.size() : 0)};
}

Translation accepted_at(const std::string& only, const std::string& hint) {
  return [=](const TypedFlag& typed) -> Words {
    if (typed.value == only) return {};
    fail(ErrorKind::Usage, str(typed.flag, " is ", typed.value, ", and only ", only, " is supported"), hint);
  };
}

Words nproc(const TypedFlag& typed) { return {"--nproc", typed.value}; }

// What is not a number is left to the parser.
std::optional<std::int64_t> ranks_of_nproc(const TypedFlag& typed) { return to_integer(typed.value); }

// The guide's single-process debug line: one rank, however many GPUs there are. Its default is -1.
std::optional<std::int64_t> ranks_of_local_rank(const TypedFlag& typed) {
  return integer_of(typed, "0") < 0 ? std::nullopt : std::optional<std::int64_t>(1);
}

std::optional<std::int64_t> ranks_of_world_size(const TypedFlag& typed) { return integer_of(typed, "2"); }

const std::map<std::string, GuideFlag>& guide_flags() {
  static const std::map<std::string, GuideFlag> kFlags = {
      {"batchsize", {"the same as --batch-size", batch_size}},
      {"logdir", {"the same as --run-dir", run_dir}},
      {"device", {"", device}},
      {"model-path", {"the same as --init; None: random weights", init}},
      {"distributed",
       {"accepted; how many ranks there are is said by the launcher, --nproc or --device", nothing, false}},
      {"nproc", {"", nproc, true, ranks_of_nproc}},
      {"local-rank", {"without a launcher: a single rank, unless it is -1", nothing, true, ranks_of_local_rank}},
      {"world-size",
       {"without a launcher: the same as --nproc; else it must be true", nothing, true, ranks_of_world_size}},
      {"dist-url", {"env:// only", accepted_at("env://", "ranks meet as the launcher tells them: leave it out")}},
      {"shrink-factor", {"1 only", accepted_at("1", "give the networks smaller images with --crop instead")}}};
  return kFlags;
}

// "--dist_url=env://" in parts.
struct FlagWord {
  std::string typed;  // "--dist_url"
  std::string name;   // "dist-url"
  std::optional<std::string> value;
};

FlagWord parse_flag(const std::string& word) {
  if (!word.starts_with("--") || word.size() == 2) return {};
  const std::size_t end = word.find('=');
  const std::string typed = word.substr(0, end);
  return {typed, replace_all(typed.substr(2), "_", "-"),
          end == std::string::npos ? std::nullopt : std::optional(word.substr(end + 1))};
}

// With its value, which may be the next word: `word` is left at the last word of the flag.
TypedFlag with_value(const FlagWord& flag, bool has_value, Words::const_iterator& word, Words::const_iterator end) {
  if (!has_value && flag.value) {
    fail(ErrorKind::Usage, str(flag.typed, " takes no value, and ", *flag.value, " was given"),
         str("say ", flag.typed));
  }
  if (!has_value || flag.value) return {flag.typed, flag.value.value_or("")};
  if (word + 1 == end || (word + 1)->starts_with("--")) {
    fail(ErrorKind::Usage, str(flag.typed, " needs a value"), "`tandem segment train --help` lists the flags");
  }
  return {flag.typed, *++word};
}

// Flags that ask for a number of ranks, as they were typed.
struct WantedRanks {
  std::string name;   // "local-rank"
  std::string typed;  // "--local_rank 0"
  std::int64_t count = 0;
};

// Without a launcher, all of them must ask for the same number.
void check_agree(const std::vector<WantedRanks>& all) {
  for (const WantedRanks& wanted : all) {
    if (wanted.count == all.front().count) continue;
    fail(ErrorKind::Usage,
         str(all.front().typed, " asks for ", counted(all.front().count, "rank"), ", and ", wanted.typed, " for ",
             wanted.count),
         "leave one of them out");
  }
}

void check_world_size(const std::vector<WantedRanks>& all, std::int64_t launched) {
  for (const WantedRanks& wanted : all) {
    if (wanted.name != "world-size" || wanted.count == launched) continue;
    fail(ErrorKind::Usage, str(wanted.typed, ", but the launcher started ", counted(launched, "rank")),
         "leave it out: the launcher says how many ranks there are");
  }
}

}  // namespace

Words translate_guide_flags(const Words& words, std::size_t first_flag, std::optional<std::int64_t> launched_ranks) {
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(first_flag);
  Words result(words.begin(), begin);
  std::vector<WantedRanks> wanted;
  for (auto word = begin; word != words.end(); ++word) {
    const FlagWord flag = parse_flag(*word);
    const auto entry = guide_flags().find(flag.name);
    if (entry == guide_flags().end()) {
      result.push_back(*word);
      continue;
    }
    const GuideFlag& known = entry->second;
    const TypedFlag typed = with_value(flag, known.has_value, word, words.end());
    const Words ours = known.translate(typed);
    result.insert(result.end(), ours.begin(), ours.end());
    const auto ranks = known.ranks ? known.ranks(typed) : std::nullopt;
    if (ranks) wanted.push_back({flag.name, str(typed.flag, ' ', typed.value), *ranks});
  }
  if (launched_ranks) check_world_size(wanted, *launched_ranks);
  if (launched_ranks || wanted.empty()) return result;
  check_agree(wanted);
  if (std::ranges::count(wanted, "nproc", &WantedRanks::name) == 0) {
    result.insert(result.end(), {"--nproc", str(wanted.front().count)});
  }
  return result;
}

Words command_first(Words words) {
  if (words.size() > 2 && parse_flag(words[1]).name == "local-rank") std::swap(words[1], words[2]);
  return words;
}

std::string guide_flags_help() {
  constexpr std::size_t kColumn = 32;  // as the flags above it
  std::string text = "\nflags of guide 002:\n";
  for (const auto& [name, flag] : guide_flags()) {
    if (flag.help.empty()) continue;
    std::string line = str("      --", name);
    line.resize(kColumn, ' ');
    text += str(line, flag.help, '\n');
  }
  return text;
}

}  // namespace tandem::segment

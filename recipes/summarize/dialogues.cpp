#include "recipes/summarize/dialogues.h"

#include <tandem/random_key.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "base/text.h"

namespace tandem::summarize {
namespace {

using std::string_view;

constexpr std::array<string_view, 32> kNames{"Adam",  "Alice", "Anna", "Ben",   "Carl",  "Clara", "Daniel", "Diana",
                                             "Emma",  "Eric",  "Eva",  "Felix", "Frank", "Grace", "Hanna",  "Henry",
                                             "Ivan",  "Jack",  "Jane", "Julia", "Kate",  "Leo",   "Lisa",   "Lucy",
                                             "Maria", "Mark",  "Nina", "Oscar", "Paul",  "Rosa",  "Sam",    "Tom"};
constexpr std::array<string_view, 16> kVerbs{"cook", "dance", "draw", "eat",   "film", "jog",   "paint", "play",
                                             "read", "rest",  "sing", "study", "talk", "train", "wait",  "work"};
constexpr std::array<string_view, 16> kPlaces{"lake",   "park",    "beach",  "library", "school",  "museum",
                                              "garden", "station", "harbor", "market",  "theater", "stadium",
                                              "river",  "castle",  "farm",   "hotel"};
constexpr std::array<string_view, 12> kTimes{"on Monday",   "on Tuesday",  "on Wednesday", "on Thursday",
                                             "on Friday",   "on Saturday", "on Sunday",    "at noon",
                                             "at midnight", "at dawn",     "at dusk",      "at sunrise"};

// {A} speaks first. Activity, place and time are on separate lines, in varying order.
constexpr std::array<std::array<string_view, 4>, 3> kTemplates{
    {{"{A}: Hi {B}, do you want to {verb} with me?", "{B}: Sure, where?", "{A}: We can go to the {place}.",
      "{B}: Good, see you {time}."},
     {"{A}: {B}, are you free {time}?", "{B}: Yes, what do you want to do?", "{A}: I would like to {verb}.",
      "{B}: Then let us meet at the {place}."},
     {"{A}: Have you ever been to the {place}?", "{B}: No, {A}, but I would love to {verb} there.",
      "{A}: Me too, let us do it {time}.", "{B}: I will be there."}}};
constexpr std::array<string_view, 8> kFillers{"How are you?",      "It is cold here.",     "My phone is old.",
                                              "I just had lunch.", "The bus was late.",    "I am so tired.",
                                              "Nice to hear you.", "My mother says hello."};

// Pseudo-random numbers that depend on the key alone.
class Dice {
 public:
  explicit Dice(std::uint64_t key) : key_(key) {}

  std::size_t below(std::size_t count) { return mix_bits(key_++) % count; }

  template <class List>
  const auto& pick(const List& list) {
    return list[below(list.size())];
  }

 private:
  std::uint64_t key_;
};

struct Plan {
  std::size_t verb;
  std::size_t place;
  std::size_t time;
};

struct Scene {
  string_view one;
  string_view other;
  Plan plan;
};

// One plan in eight, for any seed.
bool is_held_out(const Plan& plan) { return random_key(0, Draw::Synthetic, plan.verb, plan.place, plan.time) % 8 == 0; }

Scene draw_scene(Dice& dice) {
  const std::size_t one = dice.below(kNames.size());
  const std::size_t other = (one + 1 + dice.below(kNames.size() - 1)) % kNames.size();
  const Plan plan{
      .verb = dice.below(kVerbs.size()), .place = dice.below(kPlaces.size()), .time = dice.below(kTimes.size())};
  return {.one = kNames[one], .other = kNames[other], .plan = plan};
}

std::string fill(string_view pattern, const Scene& scene) {
  std::string text(pattern);
  text = replace_all(std::move(text), "{A}", scene.one);
  text = replace_all(std::move(text), "{B}", scene.other);
  text = replace_all(std::move(text), "{verb}", kVerbs[scene.plan.verb]);
  text = replace_all(std::move(text), "{place}", kPlaces[scene.plan.place]);
  return replace_all(std::move(text), "{time}", kTimes[scene.plan.time]);
}

std::string draw_dialogue(const Scene& scene, Dice& dice) {
  std::vector<std::string> lines;
  for (const string_view line : dice.pick(kTemplates)) lines.push_back(fill(line, scene));
  const std::size_t at = 1 + dice.below(lines.size() - 1);
  const string_view speaker = dice.below(2) == 0 ? scene.one : scene.other;
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), str(speaker, ": ", dice.pick(kFillers)));
  return join(lines, "\n");
}

string_view plan_of(string_view summary) { return summary.substr(summary.find(" will ")); }

}  // namespace

SummarySets make_dialogues(std::uint64_t seed, const DialogueCounts& counts) {
  SummarySets sets;
  for (std::uint64_t i = 0; sets.train.size() < counts.train || sets.held_out.size() < counts.held_out; ++i) {
    Dice dice(random_key(seed, Draw::Synthetic, i));
    const Scene scene = draw_scene(dice);
    const bool held_out = is_held_out(scene.plan);
    std::vector<SummarySample>& set = held_out ? sets.held_out : sets.train;
    if (set.size() == (held_out ? counts.held_out : counts.train)) continue;
    set.push_back({.id = str(i),
                   .dialogue = draw_dialogue(scene, dice),
                   .summary = fill("{A} and {B} will {verb} at the {place} {time}.", scene)});
  }
  return sets;
}

std::size_t num_shared_plans(const SummarySets& sets) {
  std::unordered_set<string_view> plans;
  for (const SummarySample& sample : sets.train) plans.insert(plan_of(sample.summary));
  return static_cast<std::size_t>(std::ranges::count_if(
      sets.held_out, [&](const SummarySample& sample) { return plans.contains(plan_of(sample.summary)); }));
}

}  // namespace tandem::summarize

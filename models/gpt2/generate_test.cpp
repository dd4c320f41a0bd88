#include "models/gpt2/generate.h"

#include <gtest/gtest.h>
#include <tandem/error.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "base/error_test.h"
#include "models/gpt2/continuation.h"
#include "models/gpt2/random_gpt2_test.h"

namespace tandem {
namespace {

using torch::Tensor;

const std::vector<Prompt> kPrompts = {{{7, 1, 30, 4}, 100}, {{2}, 101}, {{9, 9, 9, 12, 40, 3, 8}, 102}, {{49, 0}, 103}};

std::vector<Tokens> generate_all(const GenerateOptions& options, const std::vector<Prompt>& prompts = kPrompts) {
  Gpt2 model = random_gpt2();
  return generate(model, prompts, options);
}

// Without a cache: runs the whole sequence again for each token.
Tokens without_cache(Gpt2& model, const Prompt& prompt, std::int64_t count) {
  Tokens all = prompt.ids;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(model->logits(torch::tensor(all).unsqueeze(0))[0][-1].argmax().item<std::int64_t>());
  }
  return {all.begin() + static_cast<std::ptrdiff_t>(prompt.ids.size()), all.end()};
}

// A model whose next token always has these probabilities: the head sees only the bias of the last norm.
Gpt2 constant_model(const std::vector<double>& probabilities) {
  const auto count = static_cast<std::int64_t>(probabilities.size());
  Gpt2 model(Gpt2Options{.layers = 1, .heads = 1, .width = 1, .context = 2000, .vocabulary = count});
  const torch::NoGradGuard no_grad;
  model->named_parameters()["ln_f.bias"].fill_(1);
  model->named_parameters()["wte.weight"].copy_(torch::tensor(probabilities).log().unsqueeze(1));
  return model;
}

// How often each token is sampled first.
std::map<std::int64_t, int> draws(const std::vector<double>& probabilities, const GenerateOptions& options) {
  Gpt2 model = constant_model(probabilities);
  std::vector<Prompt> prompts;
  for (std::int64_t sample = 0; sample < 1000; ++sample) prompts.push_back({{0}, sample});
  GenerateOptions one = options;
  one.max_new_tokens = 1;
  one.decode_batch = 1000;
  std::map<std::int64_t, int> counts;
  for (const Tokens& text : generate(model, prompts, one)) ++counts[text.at(0)];
  return counts;
}

TEST(Generate, GreedyDecodingEqualsTheModelWithoutACache) {
  Gpt2 model = random_gpt2();
  const std::vector<Tokens> texts = generate(model, kPrompts, {.max_new_tokens = 12});
  for (std::size_t i = 0; i < kPrompts.size(); ++i) EXPECT_EQ(texts[i], without_cache(model, kPrompts[i], 12)) << i;
}

TEST(Generate, DoesNotDependOnTheBatch) {
  for (const GenerateOptions& options :
       {GenerateOptions{.max_new_tokens = 12, .stop_token = 17},
        GenerateOptions{.max_new_tokens = 12, .temperature = 1.5, .top_k = 30, .seed = 4},
        GenerateOptions{.max_new_tokens = 12, .beams = 3, .stop_token = 17}}) {
    const std::vector<Tokens> together = generate_all(options);
    GenerateOptions pairs = options;
    pairs.decode_batch = 2;
    EXPECT_EQ(generate_all(pairs), together);
    for (std::size_t i = 0; i < kPrompts.size(); ++i) EXPECT_EQ(generate_all(options, {kPrompts[i]})[0], together[i]);
  }
}

TEST(Generate, EndsBeforeTheStopToken) {
  const std::vector<Tokens> free = generate_all({.max_new_tokens = 12});
  const std::int64_t stop = free[2][5];
  const std::vector<Tokens> stopped = generate_all({.max_new_tokens = 12, .stop_token = stop});
  for (std::size_t i = 0; i < free.size(); ++i) {
    EXPECT_EQ(stopped[i], Tokens(free[i].begin(), std::find(free[i].begin(), free[i].end(), stop)));
  }
  EXPECT_LT(stopped[2].size(), 6U);
  EXPECT_NE(stopped[0].size(), stopped[2].size());
}

TEST(Generate, DoesNotStopBeforeTheMinimumLength) {
  const std::int64_t stop = generate_all({.max_new_tokens = 12})[0][1];
  for (const Tokens& text : generate_all({.max_new_tokens = 12, .min_new_tokens = 7, .stop_token = stop})) {
    EXPECT_GE(text.size(), 7U);
    EXPECT_EQ(std::count(text.begin(), text.end(), stop), 0);
  }
}

TEST(Generate, DoesNotRepeatNGrams) {
  const auto has_repetition = [](const Tokens& text, std::size_t length) {
    std::set<Tokens> seen;
    for (std::size_t i = 0; i + length <= text.size(); ++i) {
      const auto begin = text.begin() + static_cast<std::ptrdiff_t>(i);
      if (!seen.emplace(begin, begin + static_cast<std::ptrdiff_t>(length)).second) return true;
    }
    return false;
  };
  Gpt2 model = constant_model({0.5, 0.3, 0.2});
  const std::vector<Prompt> prompt = {{{0, 0, 0}, 0}};
  EXPECT_EQ(generate(model, prompt, {.max_new_tokens = 3, .no_repeat_ngram = 1})[0], (Tokens{0, 1, 2}));
  EXPECT_EQ(generate(model, prompt, {.max_new_tokens = 6, .no_repeat_ngram = 2})[0], (Tokens{0, 0, 1, 0, 2, 0}));
  EXPECT_EQ(generate(model, prompt, {.max_new_tokens = 6})[0], (Tokens{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(generate(model, prompt, {.max_new_tokens = 4, .no_repeat_ngram = 1})[0], (Tokens{0, 1, 2, 0}));
  const Tokens beam = generate(model, prompt, {.max_new_tokens = 8, .beams = 2, .no_repeat_ngram = 3})[0];
  EXPECT_FALSE(has_repetition(beam, 3));
  EXPECT_TRUE(has_repetition(beam, 2));
}

TEST(Generate, SamplesByProbability) {
  const auto counts = draws({0.6, 0.3, 0.1, 0}, {.temperature = 1});
  EXPECT_NEAR(counts.at(0), 600, 50);
  EXPECT_NEAR(counts.at(1), 300, 50);
  EXPECT_NEAR(counts.at(2), 100, 35);
  EXPECT_FALSE(counts.contains(3));
}

// Probabilities to the power of 1/2: 0.8, 0.4 and 0.2, over 1.4.
TEST(Generate, SamplesMoreEvenlyAtAHigherTemperature) {
  const auto counts = draws({0.64, 0.16, 0.04}, {.temperature = 2});
  EXPECT_NEAR(counts.at(0), 571, 50);
  EXPECT_NEAR(counts.at(1), 286, 50);
  EXPECT_NEAR(counts.at(2), 143, 40);
}

TEST(Generate, TopKKeepsTies) {
  const auto counts = draws({0.1, 0.4, 0.2, 0.2, 0.1}, {.temperature = 1, .top_k = 2});
  EXPECT_EQ(counts.size(), 3U);
  EXPECT_NEAR(counts.at(1), 500, 50);
  EXPECT_NEAR(counts.at(2), 250, 50);
  EXPECT_NEAR(counts.at(3), 250, 50);
}

TEST(Generate, TopPKeepsTheSmallestSet) {
  EXPECT_EQ(draws({0.05, 0.5, 0.3, 0.15}, {.temperature = 1, .top_p = 0.75}).size(), 2U);
  EXPECT_EQ(draws({0.05, 0.5, 0.3, 0.15}, {.temperature = 1, .top_p = 0.85}).size(), 3U);
  EXPECT_EQ(draws({0.05, 0.5, 0.3, 0.15}, {.temperature = 1, .top_p = 0.1}).size(), 1U);
  EXPECT_EQ(draws({0.05, 0.5, 0.3, 0.15}, {.temperature = 1, .top_p = 0}).size(), 1U);
}

TEST(Generate, SamplesBySeedSampleAndPosition) {
  const std::vector<Prompt> twice = {{{5, 6}, 1}, {{5, 6}, 2}, {{5, 6}, 1}};
  const auto texts = [&](std::uint64_t seed) {
    return generate_all({.max_new_tokens = 20, .temperature = 5, .seed = seed}, twice);
  };
  const std::vector<Tokens> drawn = texts(1);
  EXPECT_EQ(drawn[0], drawn[2]);
  EXPECT_NE(drawn[0], drawn[1]);
  EXPECT_NE(drawn[0], texts(2)[0]);
  EXPECT_GT(std::set(drawn[0].begin(), drawn[0].end()).size(), 5U);
}

TEST(Generate, BeamSearchWithOneBeamIsGreedy) {
  Gpt2 model = random_gpt2();
  model->eval();
  const std::int64_t stop = generate_all({.max_new_tokens = 12})[2][5];
  for (const std::optional<std::int64_t> stop_token : {std::optional<std::int64_t>(), std::optional(stop)}) {
    const GenerateOptions options{.max_new_tokens = 12, .no_repeat_ngram = 3, .stop_token = stop_token};
    EXPECT_EQ(beam_search(model, kPrompts, options), generate_all(options));
  }
}

TEST(Generate, BeamSearchFindsATextThatGreedyDecodingMisses) {
  Gpt2 model = random_gpt2();
  const auto log_p = [&](const Prompt& prompt, const Tokens& text) {
    Tokens all = prompt.ids;
    all.insert(all.end(), text.begin(), text.end());
    const Tensor logits = model->logits(torch::tensor(all).unsqueeze(0))[0].log_softmax(-1);
    double sum = 0;
    for (std::size_t i = prompt.ids.size(); i < all.size(); ++i) {
      sum += logits[static_cast<std::int64_t>(i) - 1][all[i]].item<double>();
    }
    return sum;
  };
  const std::vector<Tokens> greedy = generate_all({.max_new_tokens = 8});
  const std::vector<Tokens> beam = generate_all({.max_new_tokens = 8, .beams = 20});
  int num_better = 0;
  for (std::size_t i = 0; i < kPrompts.size(); ++i) {
    const double gain = log_p(kPrompts[i], beam[i]) - log_p(kPrompts[i], greedy[i]);
    EXPECT_GE(gain, -1e-4);
    if (gain > 0.01) ++num_better;
  }
  EXPECT_GT(num_better, 0);
}

// The text that stops at once has log 0.4 = -0.92. Of those that stop later, n tokens of 0.6 and a stop, log p / length
// is greater: (log 0.6 + log 0.4) / 2 = -0.71.
TEST(Generate, BeamSearchPrefersLongTextsByTheLengthPenalty) {
  Gpt2 model = constant_model({0.6, 0.4});
  const auto length = [&](double penalty) {
    return generate(model, std::vector<Prompt>{{{0}, 0}},
                    {.max_new_tokens = 5, .beams = 2, .length_penalty = penalty, .stop_token = 1})[0]
        .size();
  };
  EXPECT_EQ(length(0), 0U);
  EXPECT_EQ(length(1), 5U);
}

TEST(Generate, RestoresTrainingMode) {
  Gpt2 model = random_gpt2();
  model->train();
  generate(model, kPrompts, {.max_new_tokens = 1});
  EXPECT_TRUE(model->is_training());
}

TEST(Generate, RejectsPromptsThatDoNotFit) {
  const Error error = error_of([] { generate_all({.max_new_tokens = 18}); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(says(error.message(), {"sample 102", "7 tokens", "18 new", "24"}));
  EXPECT_TRUE(says(error.hint(), {"6 tokens", "--max-new-tokens"}));
  const Error empty = error_of([] { generate_all({.max_new_tokens = 5}, {{{}, 8}}); });
  EXPECT_TRUE(says(empty.message(), {"sample 8", "0 tokens", "5 new", "24"}));
  EXPECT_EQ(generate_all({}, {}).size(), 0U);
}

TEST(Generate, RejectsContradictingOptions) {
  const auto message = [](const GenerateOptions& options) { return error_of([&] { validate(options); }).message(); };
  EXPECT_TRUE(says(message({.top_k = 5}), {"top-k", "temperature is 0"}));
  EXPECT_TRUE(says(message({.temperature = 0.5, .beams = 4}), {"beams is 4", "temperature 0.5"}));
  EXPECT_TRUE(says(message({.max_new_tokens = 0}), {"max-new-tokens is 0"}));
  EXPECT_TRUE(says(message({.temperature = 1, .top_p = 1.5}), {"top-p is 1.5"}));
  EXPECT_EQ(message({}), "");
}

TEST(Generate, RejectsLogitsThatAreNotFinite) {
  for (const double odd : {std::nan(""), HUGE_VAL}) {
    Gpt2 model = random_gpt2();
    {
      const torch::NoGradGuard no_grad;
      model->named_parameters()["ln_f.bias"][0] = odd;
    }
    for (const GenerateOptions& options :
         {GenerateOptions{}, GenerateOptions{.temperature = 1}, GenerateOptions{.beams = 2}}) {
      GenerateOptions few = options;
      few.max_new_tokens = 2;
      EXPECT_TRUE(says(error_of([&] { generate(model, kPrompts, few); }).message(), {"generate", "not finite"}));
    }
  }
}

TEST(Generate, SamplesTheMostProbableTokenAtTemperaturesNearZero) {
  const std::vector<double> probabilities = {0.2, 0.5, 0.3};
  const std::map<std::int64_t, int> always = {{1, 1000}};
  EXPECT_EQ(draws(probabilities, {.temperature = 1, .top_p = 0}), always);
  for (const double temperature : {1e-5, 1e-38, 1e-40, 1e-300}) {
    EXPECT_EQ(draws(probabilities, {.temperature = temperature}), always) << temperature;
  }
}

}  // namespace
}  // namespace tandem

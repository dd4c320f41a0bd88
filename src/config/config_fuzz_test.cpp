#include <gtest/gtest.h>
#include <tandem/config.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "base/text.h"
#include "base/worker_env.h"
#include "config/sample_config_test.h"

namespace tandem {
namespace {

using Random = std::mt19937_64;

// Short in `make test`, long in `make soak`.
int rounds() { return environment_variable("TANDEM_SOAK") ? 100'000 : 500; }

// Any Unicode text without NUL, with many characters that are special in YAML.
std::string random_text(Random& random) {
  static const std::vector<std::string> pieces = {"\"",
                                                  "'",
                                                  "\\",
                                                  "\n",
                                                  "\t",
                                                  " ",
                                                  "#",
                                                  ":",
                                                  "-",
                                                  "[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  ",",
                                                  "&",
                                                  "*",
                                                  "!",
                                                  "|",
                                                  ">",
                                                  "%",
                                                  "@",
                                                  "`",
                                                  "~",
                                                  "\r",
                                                  "\x01",
                                                  "\x7F",
                                                  "a",
                                                  "Z",
                                                  "0",
                                                  "none",
                                                  "null",
                                                  "\xC2\x85",
                                                  "\xE2\x80\xA8",
                                                  "\xEF\xBB\xBF",
                                                  "\xE4\xB8\xAD",
                                                  "\xF0\x9F\x98\x80"};
  std::string text;
  for (std::size_t left = random() % 12; left > 0; --left) text += pieces[random() % pieces.size()];
  return text;
}

double random_double(Random& random) {
  const auto value = std::bit_cast<double>(random());
  return std::isnan(value) ? 0.5 : value;
}

SampleConfig random_config(Random& random) {
  SampleConfig config{.batch_size = static_cast<std::int64_t>(random()),
                      .level = static_cast<std::uint8_t>(random()),
                      .dropout = std::bit_cast<float>(static_cast<std::uint32_t>(random())),
                      .shuffle = random() % 2 == 0,
                      .name = random_text(random),
                      .data = random_text(random),
                      .stop_at = std::chrono::seconds(static_cast<std::int64_t>(random() % 9'000'000'000)),
                      .memory = {random()},
                      .precision = static_cast<SamplePrecision>(random() % 3),
                      .tags = {},
                      .max_steps = std::nullopt,
                      .note = std::nullopt,
                      .optimizer = {.lr = std::abs(random_double(random)), .betas = {}, .nesterov = random() % 2 == 0}};
  if (std::isnan(config.dropout)) config.dropout = 0.5F;
  if (random() % 2 == 0) config.max_steps = static_cast<std::int64_t>(random());
  if (random() % 2 == 0) config.note = random_text(random);
  for (std::size_t left = random() % 4; left > 0; --left) config.tags.push_back(random_text(random));
  for (std::size_t left = random() % 4; left > 0; --left) config.optimizer.betas.push_back(random_double(random));
  return config;
}

TEST(ConfigFuzz, WhateverIsStoredComesBackTheSame) {
  const std::uint64_t seed = std::random_device{}();
  Random random(seed);
  const std::string path = str(testing::TempDir(), "config_fuzz_", ::getpid(), ".yaml");
  for (int round = 0; round < rounds(); ++round) {
    SampleConfig stored = random_config(random);
    const std::string yaml = config_yaml(fields_of(stored));
    std::ofstream(path, std::ios::binary) << yaml;
    SampleConfig loaded;
    const std::vector<std::string> args = {"--config", path};
    ASSERT_NO_THROW(load_config(loaded, args, kSampleProgram)) << "seed " << seed << ", round " << round << '\n'
                                                               << yaml;
    ASSERT_EQ(loaded, stored) << "seed " << seed << ", round " << round << '\n' << yaml;
  }
  ::unlink(path.c_str());
}

TEST(ConfigFuzz, AnyBytesAsAFileAreTakenOrRefusedWithASentence) {
  const std::uint64_t seed = std::random_device{}();
  Random random(seed);
  const std::string path = str(testing::TempDir(), "config_bytes_", ::getpid(), ".yaml");
  for (int round = 0; round < rounds(); ++round) {
    SampleConfig config;
    std::string text = config_yaml(fields_of(config));
    for (int changes = 0; changes < 3; ++changes) text[random() % text.size()] = static_cast<char>(random());
    std::ofstream(path, std::ios::binary) << text;
    try {
      std::vector<Field> fields = fields_of(config);
      load_yaml(fields, path);
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::Config) << "seed " << seed << '\n' << text;
      ASSERT_NE(error.hint(), "") << "seed " << seed << '\n' << text;
    }
  }
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace tandem

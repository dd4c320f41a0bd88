#include "fuzz/fuzzer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <random>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "fuzz/coverage.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxInput = 4096;

std::vector<std::string> read_corpus(const fs::path& folder) {
  std::vector<std::string> inputs;
  for (const auto& entry : fs::directory_iterator(folder)) inputs.push_back(read_file(entry.path()));
  std::ranges::sort(inputs);
  return inputs;
}

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         std::string_view("\"_.+-").find(letter) != std::string_view::npos;
}

class Fuzzer {
 public:
  explicit Fuzzer(const Fuzzing& fuzzing)
      : fuzzing_(fuzzing),
        last_path_(fs::temp_directory_path() / str("fuzz_", fuzzing.name)),
        last_(::open(last_path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {}
  ~Fuzzer() { fs::remove(last_path_); }
  Fuzzer(const Fuzzer&) = delete;
  Fuzzer& operator=(const Fuzzer&) = delete;

  // An input that comes to new places is kept.
  void run(std::string input) {
    ++num_runs_;
    put(last_.get(), input);
    start_run();
    try {
      fuzzing_.parse(input);
      ++num_taken_;
    } catch (const Error& error) {
      ASSERT_NE(error.message(), "") << testing::PrintToString(input);
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed_ << ": " << error.what() << " at " << testing::PrintToString(input);
    }
    if (num_new_steps() > 0) inputs_.push_back(std::move(input));
  }

  std::string next_input() {
    std::string input = promising_input();
    for (std::size_t left = below(4) + 1; left > 0; --left) change(input);
    input.resize(std::min(input.size(), kMaxInput));
    if (fuzzing_.mend && below(2) == 0) fuzzing_.mend(input);
    return input;
  }

  std::int64_t num_runs() const { return num_runs_; }

  void record() const {
    testing::Test::RecordProperty("runs", str(num_runs_));
    testing::Test::RecordProperty("inputs kept", str(inputs_.size()));
    EXPECT_GT(num_taken_, 0) << "no input is right: nothing behind the first check was tried";
    EXPECT_GT(inputs_.size(), 10U) << "the parser was not compiled to show where it comes";
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  const std::string& any(const std::vector<std::string>& texts) { return texts[below(texts.size())]; }

  // Half the time one that was kept lately: where it came, nobody has looked around yet.
  const std::string& promising_input() {
    constexpr std::size_t kLately = 16;
    const std::size_t num_lately = std::min(inputs_.size(), kLately);
    return below(2) == 0 ? any(inputs_) : inputs_[inputs_.size() - 1 - below(num_lately)];
  }

  std::string end_of(const std::string& text) { return text.substr(below(text.size() + 1)); }

  void replace_word(std::string& input, std::size_t at) {
    std::size_t begin = at;
    std::size_t end = at;
    while (begin > 0 && is_word(input[begin - 1])) --begin;
    while (end < input.size() && is_word(input[end])) ++end;
    input.replace(begin, end - begin, any(fuzzing_.words));
  }

  void change(std::string& input) {
    const std::size_t at = below(input.size() + 1);
    const std::size_t count = below(std::min<std::size_t>(input.size() - at, 32) + 1);
    switch (below(8)) {
      case 0: input.insert(at, 1, static_cast<char>(random_())); break;
      case 1: input.erase(at, count); break;
      case 2: input.insert(at, input.substr(at, count)); break;
      case 3: input.insert(at, any(fuzzing_.words)); break;
      case 4: replace_word(input, at); break;
      case 5: input.replace(at, std::string::npos, end_of(any(inputs_))); break;
      case 6: input.replace(at, std::min<std::size_t>(count, 1), 1, static_cast<char>(random_() % 128)); break;
      default:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
    }
  }

  const Fuzzing& fuzzing_;
  fs::path last_path_;
  Fd last_;
  std::uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  std::vector<std::string> inputs_;
  std::int64_t num_runs_ = 0;
  std::int64_t num_taken_ = 0;
};

}  // namespace

void put(int file, std::string_view text) {
  EXPECT_EQ(::pwrite(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(::ftruncate(file, static_cast<off_t>(text.size())), 0);
}

void fuzz(const Fuzzing& fuzzing) {
  Fuzzer fuzzer(fuzzing);
  for (std::string& input : read_corpus(fs::path(TANDEM_FUZZ_CORPUS) / fuzzing.name)) fuzzer.run(std::move(input));
  const bool is_soak = environment_variable("TANDEM_SOAK").has_value();
  const Deadline deadline(std::chrono::minutes(10));
  constexpr std::int64_t kShortRuns = 20'000;
  while (!testing::Test::HasFailure() && (is_soak ? !deadline.passed() : fuzzer.num_runs() < kShortRuns)) {
    fuzzer.run(fuzzer.next_input());
  }
  fuzzer.record();
}

}  // namespace tandem

#include "multiproc/run_ranks.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <iostream>

#include "base/clock.h"
#include "base/fd.h"
#include "base/run_memory.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "launch/ranks/port.h"

namespace tandem {
namespace {

// Tells a rank for which call of run_ranks in the test it was started.
constexpr const char* kCallVariable = "TANDEM_TEST_CALL";

// The last line of a rank that has run its body; a process that exits without it has not run it.
constexpr std::string_view kDone = "[run_ranks: the body has run]\n";

int calls = 0;  // of run_ranks in the current test

class CallCounter : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo&) override { calls = 0; }
};

[[noreturn]] void run_body_and_end(const RankBody& body) {
  int code = 0;
  try {
    body(current_world());
    code = testing::Test::HasFailure() ? 1 : 0;
  } catch (const std::exception& error) {
    std::cout << describe(error);
    code = exit_code(error);
  }
  std::cout << kDone << std::flush;
  ::_exit(code);
}

struct RunningRank {
  Process process;
  Fd output;
  RankOutcome end;
};

RunningRank start_rank(const WorkerEnv& env, int call) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  Variables variables = worker_variables(env);
  variables.emplace_back(kCallVariable, str(call));
  variables.emplace_back("OMP_NUM_THREADS", "1");  // as launchers set it: more threads than cores are slow
  Pipe pipe = make_pipe();
  Process process =
      spawn({.command = {"/proc/self/exe", str("--gtest_filter=", test->test_suite_name(), '.', test->name())},
             .environment = environment_with(variables),
             .reads_input = false,
             .output = pipe.write.get(),
             .error = pipe.write.get(),
             .inherited = {env.memory_fd}});
  return {.process = std::move(process), .output = std::move(pipe.read), .end = {}};
}

// Reads the output of the rank; closes the descriptor at the end of the stream.
void drain(RunningRank& rank) {
  std::array<char, 16384> chunk{};
  const ssize_t count = ::read(rank.output.get(), chunk.data(), chunk.size());
  if (count > 0) rank.end.output.append(chunk.data(), static_cast<std::size_t>(count));
  if (count == 0) rank.output = Fd();
}

void wait_for_output(std::vector<RunningRank>& ranks, const Deadline& deadline) {
  std::vector<pollfd> events;
  for (const RunningRank& rank : ranks) events.push_back({.fd = rank.output.get(), .events = POLLIN, .revents = 0});
  ::poll(events.data(), events.size(), deadline.poll_ms());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (events[i].revents != 0) drain(ranks[i]);
  }
}

bool take_done(std::string& output) {
  const std::size_t at = output.rfind(kDone);
  if (at == std::string::npos) return false;
  output.erase(at, kDone.size());
  return true;
}

}  // namespace

bool is_rank() { return environment_variable(kCallVariable).has_value(); }

std::vector<RankOutcome> run_ranks_to_end(int size, const RankBody& body, std::chrono::seconds limit) {
  static const bool counting = (testing::UnitTest::GetInstance()->listeners().Append(new CallCounter), true);
  const int this_call = counting ? calls++ : 0;
  if (const auto call = environment_variable(kCallVariable)) {
    if (*call == str(this_call)) run_body_and_end(body);
    return {};
  }

  const ReservedPort port = reserve_port();
  const Fd memory = create_run_memory();
  WorkerEnv env{.world = {.size = size, .local_size = size}, .master_port = port.number, .memory_fd = memory.get()};
  env.devices.assign(size, "cpu");
  std::vector<RunningRank> ranks;
  for (int rank = 0; rank < size; ++rank) {
    env.world.rank = env.world.local_rank = rank;
    ranks.push_back(start_rank(env, this_call));
  }
  const Deadline deadline(limit);
  const auto is_open = [](const RunningRank& rank) { return static_cast<bool>(rank.output); };
  while (std::ranges::any_of(ranks, is_open) && !deadline.passed()) wait_for_output(ranks, deadline);

  std::vector<RankOutcome> ends;
  for (RunningRank& rank : ranks) {
    rank.end.out_of_time = is_open(rank);
    if (rank.end.out_of_time) rank.process.signal_group(SIGKILL);
    rank.end.status = rank.process.wait();
    rank.end.ran = take_done(rank.end.output);
    ends.push_back(std::move(rank.end));
  }
  return ends;
}

std::string failures(const std::vector<RankOutcome>& ends) {
  std::string text;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const RankOutcome& end = ends[rank];
    if (end.status.ok() && !end.out_of_time && end.ran) continue;
    const std::string how = end.out_of_time   ? "still running at the limit"
                            : end.status.ok() ? "ended without running its body"
                                              : end.status.text();
    text += str("rank ", rank, " of ", ends.size(), ": ", how, '\n', end.output, '\n');
  }
  return text;
}

void run_ranks(int size, const RankBody& body, std::chrono::seconds limit) {
  const std::string text = failures(run_ranks_to_end(size, body, limit));
  if (!text.empty()) ADD_FAILURE() << text;
}

}  // namespace tandem

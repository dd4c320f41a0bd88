#include "launch/jobs/job.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tandem/error.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/printable.h"
#include "base/text.h"
#include "launch/facts_test.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class JobTest : public testing::Test {
 protected:
  JobTest() { ::setenv("TANDEM_STATE_DIR", jobs_.c_str(), 1); }
  ~JobTest() override {
    ::unsetenv("TANDEM_STATE_DIR");
    fs::remove_all(jobs_.parent_path());
  }

  // A job of this process, or of one that has ended.
  static JobFolder make(const std::string& name, const std::string& started, bool running) {
    JobRecord record;
    record.name = name;
    record.started = started;
    record.command = {"sleep", "1"};
    record.started_ticks = running ? 0 : 1;
    return JobFolder::create(record);
  }

  static std::string names() {
    std::vector<std::string> names;
    for (const Job& job : list_jobs()) names.push_back(job.record.name);
    return join(names, " ");
  }

  fs::path jobs_ = fs::path(testing::TempDir()) / str("tandem_jobs_", ::getpid()) / "inner";
};

TEST_F(JobTest, IsReadAsItWasWritten) {
  JobRecord record;
  record.name = "exp-1";
  record.run_id = "1-2";
  record.command = {"python3", "train.py", "--text", "a \"b\" \n c"};
  record.folder = "/somewhere";
  record.world_size = 8;
  record.first_rank = 4;
  record.local_size = 4;
  record.devices = {"0", "GPU-1"};
  record.master_addr = "10.0.0.1";
  record.master_port = 29500;
  const JobFolder folder = JobFolder::create(record);

  const Job job = find_job("exp-1");
  EXPECT_EQ(to_json(job.record), to_json(folder.record()));
  EXPECT_EQ(job.record.command.back(), "a \"b\" \n c");
  EXPECT_EQ(job.record.devices, (std::vector<std::string>{"0", "GPU-1"}));
  EXPECT_EQ(job.record.pid, ::getpid());
  EXPECT_EQ(job.record.log_dir, jobs_ / "exp-1");
  EXPECT_EQ(job.path, jobs_ / "exp-1");
  EXPECT_TRUE(fs::is_directory(folder.stacks()));
  EXPECT_TRUE(job.running);
  EXPECT_EQ(job.outcome, "running");
}

TEST_F(JobTest, KeepsItsLogsWhereItIsToldAndItsEndWhenTheNextOneDoesSoToo) {
  JobRecord record;
  record.name = "elsewhere";
  record.log_dir = jobs_.parent_path() / "logs" / "deep";
  JobFolder::create(record).event({{"event", "end"}, {"outcome", "failed"}, {"exit_code", 3}, {"seconds", 1.5}});
  EXPECT_NE(read_file(jobs_.parent_path() / "logs/deep/launch.jsonl").find("\"failed\""), std::string::npos);
  record.name = "next";
  JobFolder::create(record);
  EXPECT_EQ(read_file(jobs_.parent_path() / "logs/deep/launch.jsonl"), "");
  EXPECT_EQ(find_job("elsewhere").exit_code, 3);
}

TEST_F(JobTest, TellsOfTheRanksOfTheLastAttempt) {
  const JobFolder folder = make("train", "2026-01-01T00:00:00.000Z", true);
  folder.event({{"event", "start"}, {"attempt", 0}, {"rank", 0}, {"pid", 10}});
  folder.event({{"event", "start"}, {"attempt", 0}, {"rank", 1}, {"pid", 11}});
  folder.event({{"event", "exit"}, {"rank", 1}, {"pid", 11}, {"code", 1}, {"signal", 0}});
  folder.event({{"event", "restart"}, {"attempt", 1}, {"reason", "rank 1 failed"}});
  folder.event({{"event", "start"}, {"attempt", 1}, {"rank", 1}, {"pid", 21}});
  folder.event({{"event", "start"}, {"attempt", 1}, {"rank", 0}, {"pid", 20}});
  folder.event({{"event", "exit"}, {"rank", 0}, {"pid", 20}, {"code", 0}, {"signal", 9}});
  const Job job = find_job("train");
  ASSERT_EQ(job.ranks.size(), 2U);
  EXPECT_EQ(job.ranks[0].pid, 20);
  EXPECT_TRUE(job.ranks[0].ended);
  EXPECT_EQ(job.ranks[0].status.signal, 9);
  EXPECT_EQ(job.ranks[1].pid, 21);
  EXPECT_FALSE(job.ranks[1].ended);
  EXPECT_TRUE(job.running);
}

TEST_F(JobTest, WritesTheTimeOfAnEventFirstAndEachOnALineOfItsOwn) {
  const JobFolder folder = make("train", "", true);
  folder.event({{"event", "signal"}, {"signal", 15}});
  folder.event({{"event", "restart"}, {"reason", "two\nlines"}});
  const std::vector<std::string> lines = split(read_file(folder.log_dir() / "launch.jsonl"), '\n');
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].starts_with("{\"time\":\"20")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with("Z\",\"event\":\"signal\",\"signal\":15}")) << lines[0];
  EXPECT_EQ(lines[2], "");
}

TEST_F(JobTest, HasEndedOnceItSaysSoAndIsLostWhenItsLauncherIsGone) {
  const JobFolder ended = make("ended", "", true);
  ended.event({{"event", "end"}, {"outcome", "succeeded"}, {"exit_code", 0}, {"seconds", 12}});
  EXPECT_EQ(find_job("ended").outcome, "succeeded");
  EXPECT_EQ(find_job("ended").seconds, 12.0);
  EXPECT_FALSE(find_job("ended").running);

  make("dead", "", false);  // our pid, but another start time
  EXPECT_EQ(find_job("dead").outcome, "lost");
  EXPECT_FALSE(find_job("dead").running);
}

TEST_F(JobTest, LosesOnlyTheDamagedLinesOfItsEvents) {
  const JobFolder folder = make("train", "", true);
  folder.event({{"event", "start"}, {"rank", 0}, {"pid", 10}});
  std::ofstream(folder.log_dir() / "launch.jsonl", std::ios::app) << "{\"event\":\"sta\n[1]\n{\"event\":\"start\"}\n";
  folder.event({{"event", "start"}, {"rank", 1}, {"pid", 11}});
  EXPECT_EQ(find_job("train").ranks.size(), 2U);
}

TEST_F(JobTest, IsNamedAfterItsProgramAndNumbered) {
  const auto name_for = [](std::vector<std::string> command) {
    JobRecord record;
    record.command = std::move(command);
    return JobFolder::create(record).record().name;
  };
  EXPECT_EQ(name_for({"./build/train", "x"}), "train");
  EXPECT_EQ(name_for({"python3", "-u", "src/train.py"}), "train-2");
  EXPECT_EQ(name_for({"/usr/bin/python3.11", "-m", "fit.model"}), "fit");
  EXPECT_EQ(name_for({"python3", "-c", "import os; print(1)"}), "python3");
  EXPECT_EQ(name_for({"python3"}), "python3-2");
  EXPECT_EQ(name_for({"/bin/--?"}), "job");
  EXPECT_EQ(name_for({}), "job-2");
}

TEST_F(JobTest, TakesTheNameOfAFinishedOneButNotOfARunningOne) {
  const JobFolder first = make("exp", "2026-01-01T00:00:00.000Z", true);
  EXPECT_EQ(lacks(failure_text([] { make("exp", "", true); }),
                  {"usage: ", "exp", "running", str("pid ", ::getpid()), "`tandem stop exp`"}),
            "");
  first.event({{"event", "end"}, {"outcome", "failed"}, {"exit_code", 1}, {"seconds", 1}});
  std::ofstream(first.log_dir() / "rank0.log") << "old";
  const JobFolder second = make("exp", "2026-01-02T00:00:00.000Z", true);
  EXPECT_FALSE(fs::exists(second.log_dir() / "rank0.log"));
  EXPECT_TRUE(find_job("exp").running);
  EXPECT_EQ(std::distance(fs::directory_iterator(jobs_), {}), 1);
}

TEST_F(JobTest, HasANameThatIsAFolder) {
  for (const std::string name : {"a/b", "..", ".x", "-f", "a\nb", "\x1b[31ma"}) {
    EXPECT_EQ(
        lacks(failure_text([&] { make(name, "", true); }), {"usage: ", str("'", printable_text(name), "'"), "folder"}),
        "");
  }
}

TEST_F(JobTest, LeavesFoldersThatAreNoJobsAlone) {
  jobs_folder();
  fs::create_directory(jobs_ / "photos");
  EXPECT_EQ(lacks(failure_text([] { make("photos", "", true); }), {"usage: ", (jobs_ / "photos").native()}), "");
  prune_jobs(0);
  EXPECT_TRUE(fs::exists(jobs_ / "photos"));
  EXPECT_EQ(names(), "");
}

TEST_F(JobTest, IsFoundByTheBeginningOfItsName) {
  EXPECT_EQ(lacks(failure_text([] { find_job({}); }), {"usage: ", "no job", "`tandem run -n 2 ./train`"}), "");
  make("train", "2026-01-01T00:00:00.000Z", false);
  make("train-2", "2026-01-02T00:00:00.000Z", true);
  make("train-3", "2026-01-03T00:00:00.000Z", false);
  make("eval", "2026-01-04T00:00:00.000Z", false);
  EXPECT_EQ(find_job("train").record.name, "train");
  EXPECT_EQ(find_job("ev").record.name, "eval");
  EXPECT_EQ(find_job("tra").record.name, "train-2");
  EXPECT_EQ(lacks(failure_text([] { find_job("trian-3"); }), {"usage: ", "'trian-3'", "did you mean train-3?"}), "");
  EXPECT_EQ(lacks(failure_text([] { find_job("xyz"); }), {"usage: ", "'xyz'", "`tandem ps --all`"}), "");
  make("traffic", "2026-01-05T00:00:00.000Z", true);
  EXPECT_EQ(lacks(failure_text([] { find_job("tra"); }), {"usage: ", "'tra'", "traffic, train-3, train-2, train"}), "");
}

TEST_F(JobTest, IsTheNewestRunningOneByDefault) {
  make("a", "2026-01-01T00:00:00.000Z", true);
  make("b", "2026-01-02T00:00:00.000Z", true);
  make("c", "2026-01-03T00:00:00.000Z", false);
  EXPECT_EQ(names(), "c b a");
  EXPECT_EQ(find_job({}).record.name, "b");
}

TEST_F(JobTest, IsPrunedWhenOldAndFinishedOnly) {
  make("running", "2026-01-01T00:00:00.000Z", true);
  make("oldest", "2026-01-02T00:00:00.000Z", false);
  make("old", "2026-01-03T00:00:00.000Z", false);
  make("new", "2026-01-04T00:00:00.000Z", false);
  fs::create_directory(jobs_ / ".gone-1-x");  // of a process that was killed while it pruned
  prune_jobs(1, 4);
  EXPECT_EQ(names(), "new old oldest running");
  prune_jobs(1);
  EXPECT_EQ(names(), "new running");
  EXPECT_EQ(std::distance(fs::directory_iterator(jobs_), {}), 2);
}

TEST_F(JobTest, IsNotOldWhenItRanForLong) {
  make("long", "2026-01-01T00:00:00.000Z", false);
  make("short", "2026-01-02T00:00:00.000Z", false);
  fs::last_write_time(jobs_ / "long" / "launch.jsonl", fs::file_time_type::clock::now() + std::chrono::hours(1));
  prune_jobs(1);
  EXPECT_EQ(names(), "long");
}

TEST_F(JobTest, MayBeMadeAndPrunedByManyAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kJobs = 25;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([] {
      for (int i = 0; i < kJobs; ++i) {
        const JobFolder folder = make("", "", true);
        if (i % 5 != 0) folder.event({{"event", "end"}, {"outcome", "failed"}, {"exit_code", 1}, {"seconds", 1}});
        prune_jobs(0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  prune_jobs(0);
  EXPECT_EQ(list_jobs().size(), 20U);  // the running ones
}

TEST_F(JobTest, LiesInAFolderThatOnlyItsUserMayEnter) {
  EXPECT_EQ(jobs_folder(), jobs_);
  struct stat facts {};
  ASSERT_EQ(::stat(jobs_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0700U);
}

TEST_F(JobTest, DoesNotLieInAFolderOfAnotherUser) {
  if (::geteuid() == 0) {
    fs::create_directories(jobs_);
    ASSERT_EQ(::chown(jobs_.c_str(), 12345, 12345), 0);
    EXPECT_EQ(lacks(failure_text([] { jobs_folder(); }),
                    {"launch: ", jobs_.native(), "another user (12345)", "TANDEM_STATE_DIR"}),
              "");
  } else {
    ::setenv("TANDEM_STATE_DIR", "/", 1);
    EXPECT_EQ(lacks(failure_text([] { jobs_folder(); }), {"launch: / ", "another user (0)", "TANDEM_STATE_DIR"}), "");
  }
}

}  // namespace
}  // namespace tandem

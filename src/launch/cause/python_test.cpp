#include "launch/cause/python.h"

#include <gtest/gtest.h>
#include <tandem/error.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/fd.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

TEST(Sitecustomize, IsWrittenWithTheSameSignalAsOurs) {
  const fs::path folder = fs::path(testing::TempDir()) / str("tandem_python_", ::getpid());
  write_sitecustomize(folder);
  const std::string script = read_file(folder / "sitecustomize.py");
  EXPECT_NE(script.find(str("STACK_SIGNAL = ", kStackSignal, ' ')), script.npos);
  EXPECT_NE(script.rfind("\nimport sitecustomize"), script.npos) << script.substr(script.size() - 100);
  EXPECT_TRUE(script.ends_with('\n'));
  fs::remove_all(folder);
}

TEST(Sitecustomize, HasASignalThatTheCLibraryLeavesToPrograms) {
  EXPECT_EQ(kStackSignal, SIGRTMIN + 16);
  EXPECT_LE(kStackSignal, SIGRTMAX);
}

TEST(Sitecustomize, CannotBeWrittenWhereThereIsNoFolder) {
  EXPECT_THROW(write_sitecustomize("/proc/no/such/folder"), Error);
}

// As Python 3.11 writes it, with one idle pool thread.
constexpr std::string_view kDump = R"(Thread 0x00007f2a4effd6c0 (most recent call first):
  File "/usr/lib/python3.11/concurrent/futures/thread.py", line 81 in _worker
  File "/usr/lib/python3.11/threading.py", line 982 in run
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

Thread 0x00007f2a4f7fe6c0 (most recent call first):
  File "load.py", line 4 in fetch
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

Current thread 0x00007f2a5c1f0040 (most recent call first):
  File "train.py", line 12 in step
  File "train.py", line 20 in <module>
)";

TEST(PythonStack, PutsTheMainThreadFirstAndOnlyCountsIdleOnes) {
  EXPECT_EQ(tidy_python_stack(kDump), R"(main thread, most recent call first:
    File "train.py", line 12 in step
    File "train.py", line 20 in <module>
a thread, most recent call first:
    File "load.py", line 4 in fetch
    File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap
1 idle thread
)");
}

TEST(PythonStack, ShowsAMainThreadThatWaitsOnALock) {
  EXPECT_EQ(tidy_python_stack("Current thread 0x0000 (most recent call first):\n"
                              "  File \"/usr/lib/python3.11/threading.py\", line 324 in wait\n"
                              "  File \"train.py\", line 20 in <module>\n"),
            "main thread, most recent call first:\n"
            "    File \"/usr/lib/python3.11/threading.py\", line 324 in wait\n"
            "    File \"train.py\", line 20 in <module>\n");
}

TEST(PythonStack, TellsThreadsInTheSamePlaceOnce) {
  const std::string thread = "Thread 0x0001 [loader] (most recent call first):\n  File \"a.py\", line 1 in f\n\n";
  EXPECT_EQ(tidy_python_stack(thread + thread + thread),
            "3 threads, most recent call first:\n    File \"a.py\", line 1 in f\n");
}

TEST(PythonStack, OfNothingIsNothing) { EXPECT_EQ(tidy_python_stack(""), ""); }

}  // namespace
}  // namespace tandem

#include "launch/cause/evidence.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"

// The texts are what Python 3.11, torch 2.13 and g++ 12 print, with frames omitted.

namespace tandem {
namespace {

std::string error_of(std::string_view output) { return find_evidence(output).error; }

TEST(FindEvidence, ReadsATracebackWithoutTorchsMark) {
  const Evidence evidence = find_evidence(
      "epoch 1\n"
      "[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"train.py\", line 8, in <module>\n"
      "[rank1]:     raise ValueError(\"boom\")\n"
      "[rank1]: ValueError: boom\n");
  EXPECT_EQ(evidence.error, "ValueError: boom");
  EXPECT_EQ(evidence.traceback,
            "Traceback (most recent call last):\n"
            "  File \"train.py\", line 8, in <module>\n"
            "    raise ValueError(\"boom\")\n"
            "ValueError: boom");
  EXPECT_FALSE(evidence.about_peer);
  EXPECT_TRUE(evidence.at_end);
}

TEST(FindEvidence, TakesTheLastTraceback) {
  EXPECT_EQ(
      error_of("Traceback (most recent call last):\n  File \"a.py\", line 2\nZeroDivisionError: division by zero\n"
               "epoch 2 goes on\n"
               "Traceback (most recent call last):\n  File \"a.py\", line 5\nMemoryError\n"),
      "MemoryError");
}

TEST(FindEvidence, KeepsTheWholeChainAndNamesItsLastError) {
  const Evidence evidence = find_evidence(
      "Traceback (most recent call last):\n  File \"chain.py\", line 3, in load\nKeyError: 'a.csv'\n"
      "\nThe above exception was the direct cause of the following exception:\n\n"
      "Traceback (most recent call last):\n  File \"chain.py\", line 5, in load\nRuntimeError: cannot load a.csv\n"
      "\nDuring handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"chain.py\", line 9, in <module>\nZeroDivisionError: division by "
      "zero\n");
  EXPECT_EQ(evidence.error, "ZeroDivisionError: division by zero");
  EXPECT_EQ(evidence.traceback.find("Traceback"), 0U);
  EXPECT_NE(evidence.traceback.find("KeyError: 'a.csv'\n\nThe above"), std::string::npos);
}

constexpr std::string_view kOwnTraceback =
    "Traceback (most recent call last):\n  File \"t.py\", line 3, in step\nKeyError: 'labels'\n";
constexpr std::string_view kPeerTraceback =
    "Traceback (most recent call last):\n  File \"t.py\", line 9, in <module>\n"
    "RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:23943. This is typically "
    "caused "
    "by a remote worker crashing. Check the logs of the remote worker before reporting an error.\n";
constexpr std::string_view kDuring = "\nDuring handling of the above exception, another exception occurred:\n\n";

TEST(FindEvidence, BlamesTheErrorThatCameBeforeTheLossOfAPeer) {
  const Evidence in_finally = find_evidence(str(kOwnTraceback, kDuring, kPeerTraceback));
  EXPECT_EQ(in_finally.error, "KeyError: 'labels'");
  EXPECT_FALSE(in_finally.about_peer);
  const Evidence at_exit =
      find_evidence(str(kOwnTraceback,
                        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
                        "  what():  [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)\n"));
  EXPECT_EQ(at_exit.error, "KeyError: 'labels'");
  EXPECT_TRUE(at_exit.at_end);
}

TEST(FindEvidence, SeesALostPeerBehindAnotherException) {
  const Evidence evidence =
      find_evidence(str(kPeerTraceback, kDuring,
                        "Traceback (most recent call last):\n  File \"t.py\", line 12\nRuntimeError: cannot save\n"));
  EXPECT_EQ(evidence.error, "RuntimeError: cannot save");
  EXPECT_TRUE(evidence.about_peer);
}

TEST(FindEvidence, KeepsNotesAndEveryLineOfAMessage) {
  const Evidence evidence = find_evidence(
      "Traceback (most recent call last):\n  File \"note.py\", line 4, in <module>\n"
      "ValueError: bad row\nsecond line\n\nin file train.csv\n");
  EXPECT_EQ(evidence.error, "ValueError: bad row");
  EXPECT_TRUE(evidence.traceback.ends_with("ValueError: bad row\nsecond line\n\nin file train.csv"))
      << evidence.traceback;
}

TEST(FindEvidence, KeepsTheTracebackOfADataLoadersWorker) {
  std::string frames;
  for (int i = 0; i < 12; ++i) frames += "  File \"fetch.py\", line 54, in fetch\n";
  const Evidence evidence = find_evidence(
      str("Traceback (most recent call last):\n  File \"train.py\", line 7\n"
          "KeyError: Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n",
          frames, "KeyError: 'label'\n\n"));
  EXPECT_EQ(evidence.error, "KeyError: Caught KeyError in DataLoader worker process 0.");
  EXPECT_TRUE(evidence.traceback.ends_with("KeyError: 'label'"));
}

TEST(FindEvidence, ReadsAnExceptionGroup) {
  const Evidence evidence = find_evidence(
      "  + Exception Group Traceback (most recent call last):\n"
      "  |   File \"group.py\", line 3, in <module>\n"
      "  |     raise ExceptionGroup(\"two loaders failed\", [e, TypeError(\"no labels\")])\n"
      "  | ExceptionGroup: two loaders failed (2 sub-exceptions)\n"
      "  +-+---------------- 1 ----------------\n"
      "    | ValueError: bad row\n"
      "    | in file train.csv\n"
      "    +---------------- 2 ----------------\n"
      "    | TypeError: no labels\n"
      "    +------------------------------------\n");
  EXPECT_EQ(evidence.error, "ExceptionGroup: two loaders failed (2 sub-exceptions)");
  EXPECT_TRUE(evidence.traceback.ends_with("| TypeError: no labels\n    +------------------------------------"));
}

TEST(FindEvidence, ReadsASyntaxErrorThoughItHasNoTraceback) {
  const Evidence evidence =
      find_evidence("  File \"syn.py\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n");
  EXPECT_EQ(evidence.error, "SyntaxError: invalid syntax");
  EXPECT_EQ(evidence.traceback.find("  File \"syn.py\""), 0U);
}

TEST(FindEvidence, ReadsWhatATerminatedCppProgramSays) {
  const Evidence evidence = find_evidence(
      "step 3\nterminate called after throwing an instance of 'std::runtime_error'\n"
      "  what():  cannot open weights.bin\nsecond line\n");
  EXPECT_EQ(evidence.error, "cannot open weights.bin");
  EXPECT_TRUE(evidence.traceback.ends_with("weights.bin\nsecond line"));
  EXPECT_EQ(error_of("terminate called after throwing an instance of 'int'\n"),
            "terminate called after throwing an instance of 'int'");
}

TEST(FindEvidence, ReadsTheFaultHandlersStackOfTheThreadThatFaulted) {
  const Evidence evidence = find_evidence(
      "Fatal Python error: Segmentation fault\n\n"
      "Thread 0x00007f0000000001 (most recent call first):\n  File \"queue.py\", line 180 in get\n\n"
      "Current thread 0x00007f9335651b80 (most recent call first):\n"
      "  File \"seg.py\", line 2 in f\n  File \"seg.py\", line 3 in <module>\n\n"
      "Thread 0x00007f0000000002 (most recent call first):\n  File \"loader.py\", line 1 in run\n\n"
      "Extension modules: numpy.core._multiarray_umath (total: 1)\n");
  EXPECT_EQ(evidence.error, "Fatal Python error: Segmentation fault");
  EXPECT_TRUE(evidence.traceback.ends_with("line 3 in <module>")) << evidence.traceback;
  EXPECT_EQ(error_of("free(): invalid pointer\nFatal Python error: Aborted\n\n  File \"a.py\", line 1 in f\n"),
            "free(): invalid pointer");
}

// pytorch/pytorch's ProcessGroupNCCL; the frames come from issues of others.
TEST(FindEvidence, TakesTheWatchdogsTimeOutForALostPeer) {
  const Evidence evidence = find_evidence(
      "[rank3]:[E621 10:00:00.123456789 ProcessGroupNCCL.cpp:685] [Rank 3] Watchdog caught collective operation "
      "timeout: "
      "WorkNCCL(SeqNum=4, OpType=BROADCAST, NumelIn=112, NumelOut=112, Timeout(ms)=600000) ran for 600011 "
      "milliseconds\n"
      "terminate called after throwing an instance of 'c10::DistBackendError'\n"
      "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 3] Process group watchdog thread terminated with exception: "
      "[Rank 3] "
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=BROADCAST)\n"
      "Exception raised from checkTimeout at ProcessGroupNCCL.cpp:632 (most recent call first):\n"
      "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f5a9616c1b6 in libc10.so)\n\n"
      "Fatal Python error: Aborted\n\nThread 0x00007f7fe6fdfb80 (most recent call first):\n  File \"train.py\", line 2 "
      "in step\n");
  EXPECT_TRUE(evidence.about_peer);
  EXPECT_EQ(evidence.error.find("[PG ID 0 PG GUID 0(default_pg) Rank 3] Process group watchdog"), 0U) << evidence.error;
  EXPECT_EQ(evidence.traceback.find("frame #0"), std::string::npos);
  EXPECT_TRUE(evidence.traceback.ends_with("line 2 in step"));
}

TEST(FindEvidence, FallsBackToALineThatSpeaksOfAnError) {
  const Evidence worker = find_evidence("step 1\nerror: read: no rows [rank 0 of 2]\nhint: check the file\n");
  EXPECT_EQ(worker.error, "error: read: no rows [rank 0 of 2]");
  EXPECT_EQ(worker.traceback, "error: read: no rows [rank 0 of 2]\nhint: check the file");
  EXPECT_EQ(error_of("usage: t.py [-h] --lr LR\nt.py: error: the following arguments are required: --lr\n"),
            "t.py: error: the following arguments are required: --lr");
  EXPECT_EQ(error_of("t: t.cpp:4: int main(): Assertion `n==7' failed.\n"),
            "t: t.cpp:4: int main(): Assertion `n==7' failed.");
  EXPECT_EQ(error_of("all is well\nstep 2\n"), "");
  EXPECT_EQ(error_of(""), "");
}

TEST(FindEvidence, IgnoresWhatWasHandledLongAgo) {
  std::string steps;
  for (int i = 0; i < 70; ++i) steps += str("step ", i, '\n');
  EXPECT_EQ(error_of(str(kOwnTraceback, steps)), "");
  const Evidence before_a_few = find_evidence(str(kOwnTraceback, steps.substr(0, steps.find("step 20\n"))));
  EXPECT_EQ(before_a_few.error, "KeyError: 'labels'");
  EXPECT_FALSE(before_a_few.at_end);
}

TEST(FindEvidence, LooksPastLinesOfLibrariesAndOtherThreads) {
  const Evidence evidence = find_evidence(
      "Traceback (most recent call last):\n  File \"t.py\", line 3, in step\nloading row 17 of 20\n  File \"t.py\", "
      "line 4\n"
      "KeyError: 'labels'\n[W1115 08:42:17.199027061 socket.cpp:469] [c10d] waitForInput: poll for socket\n"
      "wandb: Run summary\n");
  EXPECT_EQ(evidence.error, "KeyError: 'labels'");
  EXPECT_TRUE(evidence.at_end);
}

TEST(FindEvidence, SurvivesCutsBytesAndProgressBars) {
  EXPECT_EQ(
      error_of(str("er\", line 3\n", std::string(3, '\0'), "\xff\xfe 10%|#  |\r 20%|## |\x1b[A\n", kOwnTraceback)),
      "KeyError: 'labels'");
  EXPECT_EQ(error_of("Traceback (most recent call last):\n  File \"t.py\", line 3, in"), "");
  EXPECT_EQ(error_of("[rank"), "");
  EXPECT_EQ(error_of("[rank12"), "");
  EXPECT_EQ(error_of("terminate called after throwing an instance of 'X'\n  what():  "), "");
}

TEST(FindEvidence, TakesTheAbortAfterAnExceptionForItsEnd) {
  const Evidence evidence =
      find_evidence(str(kOwnTraceback, "Fatal Python error: Aborted\n\n  File \"t.py\", line 1 in f\n"));
  EXPECT_EQ(evidence.error, "KeyError: 'labels'");
  EXPECT_TRUE(
      evidence.traceback.ends_with("KeyError: 'labels'\nFatal Python error: Aborted\n\n  File \"t.py\", line 1 in f"));
}

TEST(FindEvidence, LeavesOutTheMiddleOfALongTraceback) {
  std::string frames;
  for (int i = 0; i < 100; ++i) frames += str("  File \"t.py\", line ", i, '\n');
  const Evidence evidence = find_evidence(str("Traceback (most recent call last):\n", frames, "KeyError: 'a'\n"));
  EXPECT_EQ(std::ranges::count(evidence.traceback, '\n'), 39);
  EXPECT_NE(evidence.traceback.find("\n  ... 63 lines "), std::string::npos) << evidence.traceback;
}

}  // namespace
}  // namespace tandem

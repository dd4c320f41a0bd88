#include "launch/cause/hint.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/text.h"
#include "launch/cause/memory_hint.h"
#include "launch/facts_test.h"

namespace tandem {
namespace {

std::string hint(ExitStatus status, const std::string& output, const Circumstances& now = {}) {
  RankEnd end;
  end.status = status;
  end.output = output;
  end.peak_memory = {2'147'483'648};
  return failure_hint(end, find_evidence(output), now);
}

std::string hint_for(const std::string& message, const Circumstances& now = {}) {
  return hint({.code = 1}, str("Traceback (most recent call last):\n  File \"t.py\", line 3, in step\n", message, '\n'),
              now);
}

std::string hint_of_signal(int signal, const Circumstances& now = {}) { return hint({.signal = signal}, "", now); }

void expect_says(const std::string& text, std::string_view fact) { EXPECT_EQ(lacks(text, {fact}), ""); }

Circumstances on_gpus(int ranks, int gpus) {
  Circumstances now;
  now.local_ranks = ranks;
  now.visible_gpus = gpus;
  now.program = "train.py";
  return now;
}

constexpr std::string_view kSmallerBatch = "16 x 16 becomes 8 x 32";

// The hint advises a smaller micro-batch, and blames no other process.
void expect_smaller_batch(const std::string& hint) {
  expect_says(hint, kSmallerBatch);
  EXPECT_EQ(hint.find("process "), std::string::npos) << hint;
}

std::string out_of_memory(const std::string& users) {
  return str(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 14.74 "
      "GiB "
      "of which 3.06 MiB is free. ",
      users,
      " Of the allocated memory 5.00 GiB is allocated by PyTorch, and 389.00 MiB is reserved by PyTorch but "
      "unallocated. If reserved but unallocated memory is large try setting ...");
}

TEST(FailureHint, SaysHowToUseLessGpuMemory) {
  const Circumstances now = on_gpus(1, 1);
  expect_smaller_batch(
      hint_for(out_of_memory("Including non-PyTorch memory, this process has 5.60 GiB memory in use."), now));
  expect_says(hint_for("torch.distributed.DistBackendError: NCCL error in: x, unhandled cuda error\nLast error:\nCuda "
                       "failure 2 'out of memory'"),
              kSmallerBatch);
}

// The port that it finds in use is its own launcher's.
TEST(FailureHint, NamesALauncherInsideOfARank) {
  const std::string text =
      hint({.code = 1},
           "Traceback (most recent call last):\n  File \"t.py\", line 9, in <module>\n    notebook_launcher(train)\n"
           "  File \"/x/accelerate/launchers.py\", line 277, in notebook_launcher\n    elastic_launch(config)()\n"
           "RuntimeError: The server socket has failed to listen. port: 29500, EADDRINUSE: address already in use\n");
  expect_says(text, "notebook_launcher");
  EXPECT_EQ(text.find("29500"), std::string::npos) << text;
  const std::string spawn =
      "Traceback (most recent call last):\n  File \"t.py\", line 4, in <module>\n    mp.spawn(work, nprocs=2)\n"
      "  File \"/x/torch/multiprocessing/spawn.py\", line 340, in spawn\n    return start_processes(fn)\n";
  expect_says(
      hint({.code = 1}, spawn + "DistNetworkError: port: 46657, code: -98, name: EADDRINUSE, message: in use\n"),
      "torch.multiprocessing.spawn");
  EXPECT_EQ(hint({.code = 1}, spawn + "ValueError: boom\n"), "");
}

TEST(FailureHint, NamesTheFlagForAScriptThatWantsItsLocalRank) {
  for (const char* flag : {"--local_rank", "--local-rank"}) {
    const std::string output = str("usage: t.py\nt.py: error: the following arguments are required: ", flag, "\n");
    expect_says(hint({.code = 2}, output, on_gpus(2, 2)), "tandem run --pass-local-rank underscore train.py");
  }
}

TEST(FailureHint, NamesAnotherProcessThatHoldsTheGpu) {
  Circumstances now = on_gpus(1, 1);
  const std::string text = out_of_memory(
      "Process 77 has 9.10 GiB memory in use. Including non-PyTorch memory, this process has 5.60 GiB memory in use.");
  EXPECT_EQ(lacks(hint_for(text, now), {"process 77, ", "9.10 GiB", "--device", kSmallerBatch}), "");
  now.notebook = true;
  expect_says(hint_for(text, now), "Restart the kernel");
  now.rank_pids = {76, 77};
  expect_smaller_batch(hint_for(text, now));
}

// In a container torch sees numbers of another namespace, its own included.
TEST(FailureHint, DoesNotTakeTheRankItselfForAnotherProcess) {
  expect_smaller_batch(hint_for(out_of_memory("Process 12345 has 5.53 GiB memory in use."), on_gpus(2, 2)));
  expect_says(hint_for(out_of_memory("Process 12 has 5.60 GiB memory in use. Process 99 has 9.10 GiB memory in use."),
                       on_gpus(2, 2)),
              "process 99, ");
  expect_says(hint_for(out_of_memory("Process 12 has 5.60 GiB memory in use. Process 99 has 0.90 GiB memory in use."),
                       on_gpus(2, 2)),
              "process 99, ");
  expect_smaller_batch(hint_for(
      out_of_memory("Process 12 has 5.60 GiB memory in use. Process 99 has 9.10 GiB memory in use."), on_gpus(2, 1)));
}

TEST(FailureHint, TellsAMemoryKillFromOtherKills) {
  Circumstances now;
  now.killed_for_memory = true;
  now.memory_limit = Bytes{3'221'225'472};
  EXPECT_EQ(lacks(hint_of_signal(SIGKILL, now), {"killed by the kernel", "2.0 GiB", "3.0 GiB"}), "");
  EXPECT_EQ(lacks(hint_of_signal(SIGKILL), {"kill -9", "scheduler", "dmesg"}), "");
  const std::string loader = "RuntimeError: DataLoader worker (pid 8698) is killed by signal: Killed. ";
  expect_says(hint_for(loader, now), "killed by the kernel");
  EXPECT_EQ(lacks(hint_for("MemoryError"), {"out of memory", "2.0 GiB"}), "");
}

TEST(FailureHint, SaysThatSharedMemoryIsFull) {
  Circumstances now;
  now.shm_free = Bytes{0};
  now.shm_total = Bytes{67'108'864};
  for (const char* message :
       {"RuntimeError: DataLoader worker (pid 8698) is killed by signal: Bus error. It is possible that dataloader's "
        "workers are "
        "out of shared memory. Please try to raise your shared memory limit.",
        "RuntimeError: unable to write to file </torch_722_783672312_1>: No space left on device (28)"}) {
    EXPECT_EQ(lacks(hint_for(message, now), {"/dev/shm", "0 MiB free of 64 MiB", "--shm-size=8g"}), "");
  }
  expect_says(hint_of_signal(SIGBUS, now), "0 MiB free of 64 MiB");
}

TEST(FailureHint, SaysWhoMayHoldThePort) {
  const std::string text = hint_for(
      "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: "
      "29633, "
      "useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use");
  EXPECT_EQ(lacks(text, {"port 29633", "`ss -ltnp`", "--master-port", "MASTER_PORT", "env://"}), "");
  expect_says(hint_for("OSError: [Errno 98] Address already in use"), "`ss -ltnp`");
}

TEST(FailureHint, SaysWhatLengthensATimeOut) {
  const std::string watchdog =
      "terminate called after throwing an instance of 'c10::DistBackendError'\n"
      "  what():  [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)\n";
  const std::string text = hint({.signal = SIGABRT}, watchdog, on_gpus(2, 2));
  expect_says(text, "tandem run --stall-timeout 5m train.py");
  EXPECT_EQ(lacks(text, {"tandem stack", "init_process_group(timeout=timedelta(hours=2))", "NCCL_TIMEOUT"}), "");
  EXPECT_EQ(hint_for("requests.Timeout: the server timed out"), "");
}

TEST(FailureHint, ShowsHowToLookIntoNccl) {
  const std::string message =
      "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, unhandled system error, NCCL version "
      "2.21.5\n"
      "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.";
  expect_says(hint_for(message, on_gpus(2, 2)), "tandem run -x NCCL_DEBUG=INFO train.py");
  expect_says(hint_for(message), "-x NCCL_P2P_DISABLE=1");
  Circumstances now;
  now.kaggle = true;
  EXPECT_EQ(lacks(hint_for(message, now), {"Kaggle", "-x NCCL_DEBUG=INFO"}), "");
}

TEST(FailureHint, NamesTheModuleThatIsMissing) {
  const std::string text = hint_for("ModuleNotFoundError: No module named 'ultralytics.models'");
  EXPECT_EQ(lacks(text, {"'ultralytics.models'", "PYTHONPATH"}), "");
  expect_says(text, "python -m pip install ultralytics (");
  expect_says(
      hint(
          {.code = 1},
          "/usr/bin/python3: Error while finding module specification for 'nope.train' (ModuleNotFoundError: No module "
          "named 'nope')\n"),
      "pip install nope ");
}

TEST(FailureHint, ComparesRanksWithGpus) {
  const std::string message = "torch.AcceleratorError: CUDA error: invalid device ordinal";
  EXPECT_EQ(lacks(hint_for(message, on_gpus(4, 2)), {"4 ranks and 2 visible GPUs", "tandem run -n 2 train.py"}), "");
  expect_says(hint_for(message, on_gpus(2, 2)), "LOCAL_RANK");
  expect_says(hint_for(message, on_gpus(1, 0)), "--device cpu");
  Circumstances kaggle = on_gpus(2, 1);
  kaggle.kaggle = true;
  expect_says(hint_for(message, kaggle), "GPU T4 x2");
  expect_says(hint_for("ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
                       "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000",
                       on_gpus(2, 2)),
              "two ranks use the same GPU");
  expect_says(hint_for("AssertionError: Torch not compiled with CUDA enabled"), "--device cpu");
}

TEST(FailureHint, PutsSignalsIntoWords) {
  expect_says(hint_of_signal(SIGSEGV), "invalid memory");
  expect_says(hint_of_signal(SIGABRT), "abort()");
  expect_says(hint_of_signal(SIGFPE), "division by zero");
  expect_says(hint_of_signal(SIGILL), "instruction");
  expect_says(hint_of_signal(SIGTERM), "scheduler");
  expect_says(hint_of_signal(SIGHUP), "tandem run --detach");
  expect_says(hint_of_signal(SIGXCPU), "ulimit -t");
  expect_says(hint_of_signal(SIGPIPE), "reader");
  EXPECT_EQ(hint({.signal = SIGABRT}, "terminate called after throwing an instance of 'X'\n  what():  no rows\n"), "");
  expect_says(hint_of_signal(SIGRTMIN + 3), "does not handle it");
}

TEST(FailureHint, BlamesNobodyForASignalOfOurs) {
  RankEnd end;
  end.told_to_stop = true;
  for (const int signal : {SIGTERM, SIGKILL}) {
    end.status.signal = signal;
    EXPECT_EQ(failure_hint(end, {}, {}), "");
  }
}

TEST(FailureHint, ExplainsTheCodesOfShellsAndArguments) {
  expect_says(hint({.code = 127}, "bash: line 1: nosuchcmd: command not found\n"), "PATH");
  expect_says(hint({.code = 126}, "bash: line 1: /etc/passwd: Permission denied\n"), "chmod +x");
  expect_says(hint({.code = 2}, "t.py: error: the following arguments are required: --lr\n"), "arguments");
  expect_says(hint({.code = 2}, "python3: can't open file '/x/no.py': [Errno 2] No such file or directory\n"),
              "/x/no.py");
  EXPECT_EQ(hint({.code = 2}, "two of them\n"), "");
}

TEST(FailureHint, IsSilentWhereTheWorkerHasSpoken) {
  EXPECT_EQ(hint({.code = 10}, "error: CUDA out of memory [rank 0 of 1]\nhint: use a smaller batch\n"), "");
  EXPECT_EQ(hint_for("ValueError: boom"), "");
}

TEST(FailureHint, DoesNotReadTheSourceLinesOfATraceback) {
  EXPECT_EQ(hint({.code = 1},
                 "Traceback (most recent call last):\n  File \"t.py\", line 3, in step\n"
                 "    raise ValueError if x else MemoryError\nValueError: boom\n"),
            "");
}

TEST(FailureHint, SaysWhereToLookWhenEveryoneLostAPeer) {
  expect_says(hint_for("RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:23943."),
              "other hosts");
}

TEST(SizeText, RoundsToReadableUnits) {
  EXPECT_EQ(size_text({327'155'712}), "312 MiB");
  EXPECT_EQ(size_text({1'610'612'736}), "1.5 GiB");
}

}  // namespace
}  // namespace tandem

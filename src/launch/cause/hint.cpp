#include "launch/cause/hint.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>

#include "base/text.h"
#include "launch/cause/memory_hint.h"

namespace tandem {
namespace {

struct Failure {
  const RankEnd& end;
  const Evidence& evidence;
  const Circumstances& now;
  std::string text;  // the messages to search

  bool says(std::string_view word) const { return text.find(word) != std::string::npos; }
};

// The part of `text` between two marks; empty if they are missing.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + before.size());
  return text.substr(0, std::min(text.find(after), text.size()));
}

// The messages of the traceback, without frames: source lines may contain any word.
std::string messages_of(const Evidence& evidence) {
  if (evidence.traceback.empty()) return evidence.error;
  std::string text;
  for (const std::string& line : split(evidence.traceback, '\n')) {
    const bool is_frame = line.starts_with("  File ") || (line.starts_with("    ") && !trim(line).starts_with('|'));
    if (!is_frame) text += str(line, '\n');
  }
  return text;
}

std::string run_with(const Circumstances& now, std::string_view flags) {
  return str("tandem run ", flags, ' ', now.program.empty() ? "PROGRAM" : now.program);
}

std::string killed(const Failure& failure) { return killed_hint(failure.end, failure.now); }
std::string host_memory(const Failure& failure) { return host_memory_hint(failure.end, failure.now); }
std::string gpu_memory(const Failure& failure) { return gpu_memory_hint(failure.text, failure.now); }
std::string shared_memory(const Failure& failure) { return shared_memory_hint(failure.now); }

std::string address_in_use(const Failure& failure) {
  const std::string_view port = between(failure.text, "port: ", ",");
  return str(
      "another program uses ", port.empty() ? std::string("the port") : str("port ", port),
      "; `ss -ltnp` shows it.\nLet tandem choose a free port: leave out --master-port, and set no MASTER_PORT or\n"
      "tcp://...:PORT in the program (use init_method=\"env://\")");
}

// The function that starts processes of its own, inside of a rank; empty: none did.
std::string_view nested_launcher(const Failure& failure) {
  const std::string& stack = failure.evidence.traceback;
  if (stack.find("in notebook_launcher\n") != std::string::npos) return "notebook_launcher";
  const bool is_spawn = stack.find("torch/multiprocessing/spawn.py") != std::string::npos;
  return is_spawn && failure.says("EADDRINUSE") ? "torch.multiprocessing.spawn" : "";
}

std::string nested_hint(std::string_view launcher) {
  return str(launcher, " starts processes of its own, and here it runs inside of a rank.\n",
             "Call the training function directly: tandem has started one process per device");
}

std::string wants_local_rank(const Failure& failure) {
  return str("the script wants its local rank as a flag: ", run_with(failure.now, "--pass-local-rank underscore"));
}

std::string ranks_and_gpus(const Circumstances& now) {
  return str(now.local_ranks, now.local_ranks == 1 ? " rank" : " ranks", " and ", now.visible_gpus,
             now.visible_gpus == 1 ? " visible GPU" : " visible GPUs");
}

std::string no_such_device(const Failure& failure) {
  const Circumstances& now = failure.now;
  const std::string_view kaggle = now.kaggle ? "\nOn Kaggle: Settings, Accelerator, GPU T4 x2" : "";
  if (now.visible_gpus == 0) {
    return str("no GPU is visible; use --device cpu to run on the CPU (backend gloo)", kaggle);
  }
  if (now.local_ranks > now.visible_gpus) {
    return str(ranks_and_gpus(now), ": start one rank per GPU,\n", run_with(now, str("-n ", now.visible_gpus)), kaggle);
  }
  return str(ranks_and_gpus(now),
             ": the program uses a device index that is not visible.\n"
             "Use torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])), not RANK or the index\n"
             "that nvidia-smi shows");
}

std::string same_device(const Failure& failure) {
  return str("two ranks use the same GPU, which NCCL does not allow (", ranks_and_gpus(failure.now),
             ").\nCall torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) before any other use of\n"
             "CUDA; --device selects the GPUs");
}

std::string no_cuda_build(const Failure& failure) {
  return str("this PyTorch is a CPU-only build: install one with CUDA, or run on the CPU\n(backend gloo): ",
             run_with(failure.now, "--device cpu"));
}

std::string timed_out(const Failure& failure) {
  return str("a rank did not reach the collective in time. To see which one, and where it is:\n",
             run_with(failure.now, "--stall-timeout 5m"),
             ",\nor `tandem stack` while it hangs. If it only needs more time:\n"
             "init_process_group(timeout=timedelta(hours=2)). PyTorch does not read NCCL_TIMEOUT");
}

std::string nccl_error(const Failure& failure) {
  if (failure.now.kaggle) {
    return str("NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1 are already set on Kaggle. For NCCL's log:\n",
               run_with(failure.now, "-x NCCL_DEBUG=INFO"));
  }
  return str("for NCCL's log: ", run_with(failure.now, "-x NCCL_DEBUG=INFO"),
             "\nIf the GPUs have no peer-to-peer access, add -x NCCL_P2P_DISABLE=1\n"
             "(--kaggle sets it)");
}

std::string module_missing(const Failure& failure) {
  const std::string name(between(failure.text, "No module named '", "'"));
  const std::string package = name.substr(0, name.find('.'));
  return str("'", name,
             "' is not in the script's folder, the current folder, PYTHONPATH or the\ninstalled packages.\n"
             "For a package: python -m pip install ",
             package,
             " (its PyPI name may differ)\nFor your own file: start in its folder, or add -x PYTHONPATH=FOLDER");
}

std::string lost_peer(const Failure&) {
  return "no rank on this host had an error of its own: check the ranks on other hosts,\n"
         "ranks that exited early without an error, or the server that it was connected to";
}

struct Rule {
  std::string_view word;
  std::string (*hint)(const Failure& failure);
};

// The first matching rule applies, so more specific rules come first.
constexpr std::array<Rule, 27> kRules = {{
    {"CUDA out of memory", gpu_memory},
    {"HIP out of memory", gpu_memory},
    {"CUDA error: out of memory", gpu_memory},
    {"'out of memory'", gpu_memory},
    {"out of shared memory", shared_memory},
    {"unable to write to file </torch_", shared_memory},
    {"insufficient shared memory", shared_memory},
    {"shared memory segment", shared_memory},
    {"No space left on device: '/dev/shm", shared_memory},
    {"killed by signal: Killed", killed},
    {"can't allocate memory", host_memory},
    {"MemoryError", host_memory},
    {"std::bad_alloc", host_memory},
    {"ddress already in use", address_in_use},
    {"EADDRINUSE", address_in_use},
    {"Duplicate GPU detected", same_device},
    {"invalid device ordinal", no_such_device},
    {"No CUDA GPUs are available", no_such_device},
    {"Found no NVIDIA driver", no_such_device},
    {"not compiled with CUDA", no_cuda_build},
    {"doesn't have NCCL built in", no_cuda_build},
    {"collective operation timeout", timed_out},
    {"imed out", timed_out},
    {"wait timeout", timed_out},
    {"Socket Timeout", timed_out},
    {"NCCL error", nccl_error},
    {"No module named '", module_missing},
}};

// Timeouts of anything but a collective or rendezvous are the program's own.
bool applies(const Rule& rule, const Failure& failure) {
  return failure.says(rule.word) && (rule.hint != timed_out || failure.evidence.about_peer);
}

struct SignalWords {
  int signal;
  std::string_view words;
};

constexpr std::array<SignalWords, 14> kSignalHints = {{
    {SIGSEGV,
     "native code accessed invalid memory. If a Python stack is shown, its first line\n"
     "called that code; for a C++ program, use gdb"},
    {SIGABRT, "the program called abort(): a failed assertion, or heap corruption"},
    {SIGFPE, "integer division by zero, or overflow in a division"},
    {SIGILL, "this CPU does not support an instruction of the program: it was built for another CPU"},
    {SIGSYS, "it made a system call that is not allowed here (seccomp, in many containers)"},
    {SIGTERM, "not sent by tandem: a user, a scheduler at its time limit, or a container that\nshuts down"},
    {SIGINT, "it was interrupted (Ctrl-C, or the stop button of a notebook)"},
    {SIGHUP, "its terminal was closed; `tandem run --detach` or nohup survives that"},
    {SIGQUIT, "Ctrl-\\ was pressed, or SIGQUIT was sent"},
    {SIGPIPE, "it wrote to a pipe or socket whose reader had closed"},
    {SIGXCPU, "it exceeded its limit of CPU time (ulimit -t)"},
    {SIGXFSZ, "it exceeded its limit of file size (ulimit -f)"},
    {SIGTRAP, "it hit a breakpoint, or a trap that the compiler inserted"},
    {SIGUSR1, "SIGUSR1 was sent, often by a scheduler before its time limit, and the program\ndoes not handle it"},
}};

std::string signal_hint(const Failure& failure) {
  const int signal = failure.end.status.signal;
  const bool says_why = !failure.evidence.error.empty() && !failure.evidence.error.starts_with("Fatal Python error");
  const bool by_launcher = failure.end.told_to_stop && (signal == SIGTERM || signal == SIGKILL);
  if (by_launcher || (signal == SIGABRT && says_why)) return {};
  if (signal == SIGKILL) return killed(failure);
  if (signal == SIGBUS) return str("a memory-mapped file could not be read or written. ", shared_memory(failure));
  const auto* found = std::ranges::find(kSignalHints, signal, &SignalWords::signal);
  if (found != kSignalHints.end()) return std::string(found->words);
  return "this signal was sent to it, perhaps by the program itself, and it does not handle it";
}

bool prints_usage(const Failure& failure) {
  return failure.end.status.code == 2 && failure.evidence.error.find(": error: ") != std::string::npos;
}

std::string exit_code_hint(const Failure& failure) {
  if (failure.says("can't open file '")) {
    return str(between(failure.text, "can't open file '", "'"),
               " was not found;\na name without a folder is relative to the current folder");
  }
  if (failure.says("--local-rank") || failure.says("--local_rank")) return wants_local_rank(failure);
  if (failure.end.status.code == 127) return "a shell did not find a command: check its name and PATH";
  if (failure.end.status.code == 126) return "a shell found a command that is not executable: chmod +x";
  if (prints_usage(failure)) {
    return "the program rejected its arguments. Flags for tandem go before the program's\n"
           "name; everything after it is passed to the program";
  }
  return {};
}

std::string find_hint(const Failure& failure) {
  if (const auto launcher = nested_launcher(failure); !launcher.empty()) return nested_hint(launcher);
  const auto* rule = std::ranges::find_if(kRules, [&](const Rule& r) { return applies(r, failure); });
  if (rule != kRules.end()) return rule->hint(failure);
  if (failure.evidence.about_peer) return lost_peer(failure);
  return failure.end.status.signal != 0 ? signal_hint(failure) : exit_code_hint(failure);
}

}  // namespace

std::string failure_hint(const RankEnd& end, const Evidence& evidence, const Circumstances& now) {
  const bool worker_gave_hint = evidence.traceback.find("\nhint: ") != std::string::npos;
  if (worker_gave_hint) return {};
  return find_hint({.end = end, .evidence = evidence, .now = now, .text = messages_of(evidence)});
}

}  // namespace tandem

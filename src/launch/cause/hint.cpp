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
  std::string text;  // all that is known, to look for words in

  bool says(std::string_view word) const { return text.find(word) != std::string::npos; }
};

// The part of `text` between two marks; empty where they are not there.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + before.size());
  return text.substr(0, std::min(text.find(after), text.size()));
}

// The messages of the traceback, without frames: a line of source may hold any word.
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
  return str("another program holds ", port.empty() ? std::string("the port") : str("port ", port),
             "; `ss -ltnp` names it.\nLeave the port to tandem, which reserves a free one: no --master-port, and no\n"
             "MASTER_PORT or tcp://...:PORT set in the program (init_method=\"env://\")");
}

std::string ranks_and_gpus(const Circumstances& now) {
  return str(now.local_ranks, now.local_ranks == 1 ? " rank" : " ranks", " and ", now.visible_gpus,
             now.visible_gpus == 1 ? " visible GPU" : " visible GPUs", " here");
}

std::string no_such_device(const Failure& failure) {
  const Circumstances& now = failure.now;
  const std::string_view kaggle = now.kaggle ? "\nOn Kaggle: Settings, Accelerator, GPU T4 x2" : "";
  if (now.visible_gpus == 0) {
    return str("no GPU is visible here; --device cpu runs without one (backend gloo)", kaggle);
  }
  if (now.local_ranks > now.visible_gpus) {
    return str(ranks_and_gpus(now), ": start one rank for each GPU,\n", run_with(now, str("-n ", now.visible_gpus)),
               kaggle);
  }
  return str(ranks_and_gpus(now),
             ": the program asks for one that is not among them.\n"
             "Use torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])); neither RANK nor\n"
             "the number that nvidia-smi shows will do");
}

std::string same_device(const Failure& failure) {
  return str("two ranks use the same GPU, which NCCL refuses (", ranks_and_gpus(failure.now),
             ").\nCall torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) before anything\n"
             "else that uses CUDA; --device chooses the GPUs");
}

std::string no_cuda_build(const Failure& failure) {
  return str("this torch is built for the CPU only: install one with CUDA, or run without\na GPU (backend gloo): ",
             run_with(failure.now, "--device cpu"));
}

std::string timed_out(const Failure& failure) {
  return str("a rank did not come in time to where the others waited. To see which one, and\nwhat it does: ",
             run_with(failure.now, "--stall-timeout 5m"),
             ",\nor `tandem stack` while it hangs. If it only needs longer, give it longer:\n"
             "init_process_group(timeout=timedelta(hours=2)). PyTorch reads no NCCL_TIMEOUT");
}

std::string nccl_error(const Failure& failure) {
  if (failure.now.kaggle) {
    return str("NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1 are set on Kaggle already. To see what\nNCCL tries: ",
               run_with(failure.now, "-x NCCL_DEBUG=INFO"));
  }
  return str("to see what NCCL tries: ", run_with(failure.now, "-x NCCL_DEBUG=INFO"),
             "\nWhere GPUs cannot reach each other directly, -x NCCL_P2P_DISABLE=1 helps\n"
             "(--kaggle sets it)");
}

std::string module_missing(const Failure& failure) {
  const std::string name(between(failure.text, "No module named '", "'"));
  const std::string package = name.substr(0, name.find('.'));
  return str(
      "Python looked for '", name,
      "' in the folder of the script, in this folder,\nin PYTHONPATH and among its installed packages.\n"
      "A package: python -m pip install ",
      package,
      " (its name there may differ)\nA file of yours: start in the folder that holds it, or -x PYTHONPATH=FOLDER");
}

std::string lost_peer(const Failure&) {
  return "no rank here had an error of its own: look at the ranks on other machines, at\n"
         "one that ended early without an error, or at the server that it talked to";
}

struct Rule {
  std::string_view word;
  std::string (*hint)(const Failure& failure);
};

// The first word that the failure says decides, so that the more special ones come first.
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

// Time-outs of anything else than ranks waiting for each other are not ours to explain.
bool applies(const Rule& rule, const Failure& failure) {
  return failure.says(rule.word) && (rule.hint != timed_out || failure.evidence.about_peer);
}

struct SignalWords {
  int signal;
  std::string_view words;
};

constexpr std::array<SignalWords, 14> kSignalHints = {{
    {SIGSEGV,
     "native code used memory that is not its own. If a Python stack is shown, its\n"
     "first line called that code; a C++ program shows more under gdb"},
    {SIGABRT, "the program ended itself: a failed check, or memory that it had damaged"},
    {SIGFPE, "an integer was divided by zero, or overflowed in a division"},
    {SIGILL, "it used an instruction that this CPU lacks: it was built for another one"},
    {SIGSYS, "it made a system call that is forbidden here (seccomp, in many containers)"},
    {SIGTERM,
     "someone else than tandem stopped it: a user, a scheduler at its time limit, or\na container that shuts down"},
    {SIGINT, "it was interrupted (Ctrl-C, or the stop button of a notebook)"},
    {SIGHUP, "its terminal was closed; `tandem run --detach`, or nohup, outlives that"},
    {SIGQUIT, "someone pressed Ctrl-\\, or sent it SIGQUIT"},
    {SIGPIPE, "it wrote to a pipe or a socket whose reader was gone"},
    {SIGXCPU, "it used up its limit of CPU time (ulimit -t)"},
    {SIGXFSZ, "it wrote a file larger than its limit (ulimit -f)"},
    {SIGTRAP, "it ran into a breakpoint or a check that the compiler built in"},
    {SIGUSR1, "someone sent it SIGUSR1, often a scheduler before its time limit, and the\nprogram does not handle it"},
}};

std::string signal_hint(const Failure& failure) {
  const int signal = failure.end.status.signal;
  const bool says_why = !failure.evidence.error.empty() && !failure.evidence.error.starts_with("Fatal Python error");
  const bool by_us = failure.end.told_to_stop && (signal == SIGTERM || signal == SIGKILL);
  if (by_us || (signal == SIGABRT && says_why)) return {};
  if (signal == SIGKILL) return killed(failure);
  if (signal == SIGBUS) return str("memory that is mapped to a file was not there. ", shared_memory(failure));
  const auto* found = std::ranges::find(kSignalHints, signal, &SignalWords::signal);
  if (found != kSignalHints.end()) return std::string(found->words);
  return "someone sent it this signal, perhaps the program itself, and it does not handle it";
}

bool prints_usage(const Failure& failure) {
  return failure.end.status.code == 2 && failure.evidence.error.find(": error: ") != std::string::npos;
}

std::string exit_code_hint(const Failure& failure) {
  if (failure.says("can't open file '")) {
    return str("there is no file ", between(failure.text, "can't open file '", "'"),
               ";\na name without a folder is looked for in the current one");
  }
  if (failure.end.status.code == 127) return "a shell did not find a command: check its name and the PATH";
  if (failure.end.status.code == 126)
    return "a shell may not run a command that it found: chmod +x, unless it is no program";
  if (prints_usage(failure)) {
    return "the program did not understand its arguments. Flags for tandem go before the\n"
           "program's name, those after it go to the program";
  }
  return {};
}

std::string find_hint(const Failure& failure) {
  const auto* rule = std::ranges::find_if(kRules, [&](const Rule& r) { return applies(r, failure); });
  if (rule != kRules.end()) return rule->hint(failure);
  if (failure.evidence.about_peer) return lost_peer(failure);
  return failure.end.status.signal != 0 ? signal_hint(failure) : exit_code_hint(failure);
}

}  // namespace

std::string failure_hint(const RankEnd& end, const Evidence& evidence, const Circumstances& now) {
  const bool worker_has_said_it = evidence.traceback.find("\nhint: ") != std::string::npos;
  if (worker_has_said_it) return {};
  return find_hint({.end = end, .evidence = evidence, .now = now, .text = messages_of(evidence)});
}

}  // namespace tandem

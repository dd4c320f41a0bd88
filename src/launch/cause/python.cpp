#include "launch/cause/python.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tandem/error.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "sitecustomize.h"

namespace tandem {
namespace {

struct Stack {
  std::string frames;  // one line each, the innermost first
  int threads = 1;

  bool is_main() const { return frames.ends_with(" in <module>\n") || frames.ends_with(" in _run_module_as_main\n"); }
};

bool is_title(std::string_view line) { return line.starts_with("Thread 0x") || line.starts_with("Current thread 0x"); }

std::vector<Stack> parse(std::string_view dump) {
  std::vector<Stack> stacks;
  for (const std::string& line : split(dump, '\n')) {
    if (is_title(line)) {
      stacks.emplace_back();
    } else if (!stacks.empty() && !line.empty()) {
      stacks.back().frames += str("  ", line, '\n');
    }
  }
  return stacks;
}

// Pool threads wait for work in a lock or a queue. A main thread that waits there is not idle but blocked.
bool is_idle(const Stack& stack) {
  const std::string_view first = std::string_view(stack.frames).substr(0, stack.frames.find('\n'));
  const auto is_in = [&](std::string_view file, std::string_view function) {
    return first.find(file) != first.npos && first.ends_with(str(" in ", function));
  };
  if (stack.is_main() || stack.frames.find("/threading.py\"") == stack.frames.npos) return false;
  return is_in("/threading.py\"", "wait") || is_in("/queue.py\"", "get") ||
         is_in("/concurrent/futures/thread.py\"", "_worker") || is_in("/multiprocessing/pool.py\"", "worker");
}

// Merges equal stacks, in order of first appearance.
std::vector<Stack> folded(const std::vector<Stack>& stacks) {
  std::vector<Stack> different;
  for (const Stack& stack : stacks) {
    const auto same = std::ranges::find(different, stack.frames, &Stack::frames);
    if (same == different.end()) {
      different.push_back(stack);
    } else {
      ++same->threads;
    }
  }
  return different;
}

}  // namespace

void write_sitecustomize(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "sitecustomize.py";
  const bool is_there = ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
  const Fd file(is_there ? ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1);
  if (!file || !write_all(file.get(), kSitecustomize)) {
    fail(ErrorKind::Launch, str("cannot write ", path, ": ", errno_text(errno)),
         "set TANDEM_STATE_DIR to a writable folder");
  }
}

std::string tidy_python_stack(std::string_view dump) {
  std::vector<Stack> stacks = parse(dump);
  const auto idle = std::erase_if(stacks, is_idle);
  stacks = folded(stacks);
  std::stable_partition(stacks.begin(), stacks.end(), [](const Stack& stack) { return stack.is_main(); });
  std::string text;
  for (const Stack& stack : stacks) {
    const std::string who = stack.threads > 1 ? str(stack.threads, " threads")
                            : stack.is_main() ? "main thread"
                                              : "a thread";
    text += str(who, ", most recent call first:\n", stack.frames);
  }
  if (idle > 0) text += str(idle, idle == 1 ? " idle thread\n" : " idle threads\n");
  return text;
}

}  // namespace tandem

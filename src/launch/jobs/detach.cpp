#include "launch/jobs/detach.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/fd.h"
#include "base/text.h"
#include "launch/ranks/spawn.h"

namespace tandem {
namespace {

void replace_stream(const char* path, int flags, int stream) {
  const Fd file(::open(path, flags | O_CLOEXEC, 0666));
  if (file) ::dup2(file.get(), stream);
}

int run_apart(const std::function<int(const OnStart&)>& job, Fd notify) {
  ::setsid();
  ::signal(SIGHUP, SIG_IGN);
  replace_stream("/dev/null", O_RDONLY, STDIN_FILENO);
  return job([&notify](const std::string& name, const std::string& log) {
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
      replace_stream(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, stream);
    write_all(notify.get(), name);
    const Fd done = std::move(notify);
  });
}

}  // namespace

int detach(const std::function<int(const OnStart&)>& job, const std::function<void(const std::string& name)>& started) {
  Pipe news = make_pipe();
  const pid_t pid = ::fork();
  if (pid < 0) {
    fail(ErrorKind::Launch, str("cannot start a process for the job: ", errno_text(errno)),
         "check the limit of processes (ulimit -u)");
  }
  if (pid == 0) {
    news.read = Fd();
    return run_apart(job, std::move(news.write));
  }
  news.write = Fd();
  const std::string name = read_all(news.read.get()).value_or("");
  if (!name.empty()) {
    started(name);
    return 0;
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace tandem

#include "launch/output/rank_output.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <tandem/error.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/text.h"

namespace tandem {
namespace {

constexpr std::size_t kTail = 64 << 10;
constexpr std::size_t kChunk = 256 << 10;  // pipe capacity, and the most to read at once
constexpr std::array kStreams = {Stream::Out, Stream::Error};

Fd open_log(const std::filesystem::path& path, int flags) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666));
  if (!file) {
    fail(ErrorKind::Launch, str("cannot write ", path, ": ", errno_text(errno)),
         "check the folder and its free disk space, or choose another with --log-dir");
  }
  return file;
}

int our_terminal() {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::isatty(fd) == 1) return fd;
  }
  return -1;
}

// A pseudo-terminal without output processing.
Pipe make_terminal() {
  Pipe ends;
  ends.read = Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (ends.read && ::grantpt(ends.read.get()) == 0 && ::unlockpt(ends.read.get()) == 0) {
    ends.write = Fd(::ioctl(ends.read.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  if (!ends.write) return {};
  termios settings{};
  ::tcgetattr(ends.write.get(), &settings);
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  ::tcsetattr(ends.write.get(), TCSANOW, &settings);
  return ends;
}

void keep_end(std::string& tail, std::string_view bytes) {
  if (tail.size() + bytes.size() > 2 * kTail) {
    tail.erase(0, bytes.size() >= kTail ? tail.size() : tail.size() - std::min(tail.size(), kTail));
  }
  tail += bytes.substr(bytes.size() - std::min(bytes.size(), kTail));
}

}  // namespace

RankOutput::RankOutput(const OutputPlan& plan, int local_rank, EventLoop& loop, Console& console)
    : local_rank_(local_rank), loop_(loop), console_(console), log_(open_log(plan.log, O_APPEND)) {
  const bool is_hidden = !plan.out.shown && !plan.error.shown && !plan.out.own_file && !plan.error.own_file;
  joined_ = is_hidden || (plan.out.terminal && plan.error.terminal);
  open(Stream::Out, plan.out);
  if (!joined_) open(Stream::Error, plan.error);
  match_window();
}

RankOutput::~RankOutput() {
  for (const Stream stream : kStreams) {
    if (source(stream).ours) close(stream);
  }
}

void RankOutput::open(Stream stream, const StreamPlan& plan) {
  Source& source = this->source(stream);
  source.shown = plan.shown;
  if (plan.own_file) source.file = open_log(*plan.own_file, O_TRUNC);
  Pipe ends = plan.terminal ? make_terminal() : Pipe();
  source.terminal = static_cast<bool>(ends.write);
  if (!source.terminal) {
    ends = make_pipe();
    ::fcntl(ends.read.get(), F_SETPIPE_SZ, static_cast<int>(kChunk));
  }
  ::fcntl(ends.read.get(), F_SETFL, O_NONBLOCK);
  source.ours = std::move(ends.read);
  source.child_end = std::move(ends.write);
  watch(stream);
}

void RankOutput::started() {
  for (Source& source : sources_) Fd done = std::move(source.child_end);
}

bool RankOutput::ended() const { return !source(Stream::Out).ours && !source(Stream::Error).ours; }

void RankOutput::watch(Stream stream) {
  loop_.watch(source(stream).ours.get(), EPOLLIN, [this, stream] {
    read_once(stream);
    const bool crowded = source(stream).shown && console_.outlet(stream).crowded();
    if (crowded && source(stream).ours) loop_.forget(source(stream).ours.get());
  });
}

void RankOutput::resume() {
  for (const Stream stream : kStreams) {
    if (source(stream).ours && !loop_.watches(source(stream).ours.get())) watch(stream);
  }
}

void RankOutput::read_what_is_there() {
  for (const Stream stream : kStreams) {
    while (source(stream).ours && read_once(stream)) continue;
  }
}

// True if there may be more to read. A pseudo-terminal whose other end is closed reports EIO.
bool RankOutput::read_once(Stream stream) {
  static std::vector<char> chunk(kChunk);
  const ssize_t count = ::read(source(stream).ours.get(), chunk.data(), chunk.size());
  if (count > 0) {
    take(stream, {chunk.data(), static_cast<std::size_t>(count)});
    return true;
  }
  if (count < 0 && errno == EINTR) return true;
  if (count < 0 && errno == EAGAIN) return false;
  close(stream);
  return false;
}

void RankOutput::take(Stream stream, std::string_view bytes) {
  num_bytes_ += bytes.size();
  if (source(stream).terminal) {
    write_file(log_, source(stream).drawn.take(bytes, std::chrono::steady_clock::now()));
  } else {
    write_file(log_, bytes);
  }
  write_file(source(stream).file, bytes);
  keep_end(tail_, bytes);
  if (stream == Stream::Error) keep_end(error_tail_, bytes);
  if (!source(stream).shown) return;
  console_.show(local_rank_, stream, bytes);
  // The rank gets SIGPIPE when our reader closes, as it would without the launcher. Other write errors do not affect
  // it.
  if (console_.outlet(stream).error() == EPIPE) close(stream);
}

void RankOutput::write_file(Fd& file, std::string_view bytes) {
  if (!file || write_all(file.get(), bytes)) return;
  trouble_ = str("cannot write the log of local rank ", local_rank_, " any more: ", errno_text(errno));
  Fd lost = std::move(file);
}

void RankOutput::close(Stream stream) {
  write_file(log_, source(stream).drawn.end());
  if (source(stream).shown) console_.end(local_rank_, stream);
  loop_.forget(source(stream).ours.get());
  Fd done = std::move(source(stream).ours);
}

void RankOutput::match_window() {
  winsize size{};
  if (::ioctl(our_terminal(), TIOCGWINSZ, &size) != 0) return;
  for (const Source& source : sources_) {
    if (source.terminal && source.ours) ::ioctl(source.ours.get(), TIOCSWINSZ, &size);
  }
}

}  // namespace tandem

#include "launch/ranks/port_holder.h"

#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "launch/ranks/sweep.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// A socket as the kernel's tables list it.
struct Socket {
  std::string inode;
  std::string user;  // a number; empty where the table does not say
};

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words = split(line, ' ');
  std::erase(words, "");
  return words;
}

// Columns: "0: 0100007F:733C 00000000:0000 0A ... uid timeout inode". Ports are hexadecimal, 0A is a listener; an inode
// of 0 is a connection that only the kernel still knows.
std::optional<Socket> find_tcp_socket(int port) {
  const std::string both_families =
      str(read_if_there("/proc/net/tcp6").value_or(""), read_if_there("/proc/net/tcp").value_or(""));
  std::optional<Socket> found;
  for (const std::string& line : split(both_families, '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 10 || words[9] == "0") continue;
    const std::string digits = words[1].substr(words[1].find(':') + 1);
    int number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    if (number != port) continue;
    found = Socket{.inode = words[9], .user = words[7]};
    if (words[3] == "0A") break;
  }
  return found;
}

// Columns: "Num: RefCount Protocol Flags Type St Inode Path", the path of an abstract name with '@' before it.
std::optional<Socket> find_unix_socket(std::string_view name) {
  const std::string path = str('@', name);
  for (const std::string& line : split(read_if_there("/proc/net/unix").value_or(""), '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() == 8 && words[7] == path) return Socket{.inode = words[6], .user = ""};
  }
  return std::nullopt;
}

bool holds_socket(const fs::path& process, const std::string& link) {
  std::error_code error;
  for (fs::directory_iterator entry(process / "fd", error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    if (fs::read_symlink(entry->path(), gone) == link) return true;
  }
  return false;
}

std::optional<int> find_process(const std::string& inode) {
  const std::string link = str("socket:[", inode, ']');
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const auto pid = to_integer(entry->path().filename().native());
    if (pid && holds_socket(entry->path(), link)) return static_cast<int>(*pid);
  }
  return std::nullopt;
}

std::string describe_holder(const std::optional<Socket>& socket) {
  const auto pid = socket ? find_process(socket->inode) : std::nullopt;
  if (pid) {
    const std::string name = read_if_there(str("/proc/", *pid, "/comm")).value_or("");
    return str(trim(name), " (process ", *pid, ": ", command_of(*pid), ')');
  }
  const bool is_known = socket && !socket->user.empty();
  const std::string whose = is_known ? str(" of user ", socket->user) : "";
  return str("a process", whose, " that cannot be seen from here");
}

}  // namespace

std::string tcp_port_holder(int port) { return describe_holder(find_tcp_socket(port)); }

std::string unix_socket_holder(std::string_view name) { return describe_holder(find_unix_socket(name)); }

}  // namespace tandem

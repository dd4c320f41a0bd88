#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "base/fd.h"

namespace tandem {

constexpr uid_t kNobody = 65534;

// Root ignores permissions: as root, the rest of this process is another user.
inline bool become_other_user() {
  if (::geteuid() != 0) return true;
  return ::setgroups(0, nullptr) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
         ::setresuid(kNobody, kNobody, kNobody) == 0 &&
         ::prctl(PR_SET_DUMPABLE, 1) == 0;  // so that ranks may open each other's shared memory, as before
}

// Gives a folder and all in it to the user of become_other_user().
inline void give_to_other_user(const std::filesystem::path& folder) {
  if (::geteuid() != 0) return;
  EXPECT_EQ(::chown(folder.c_str(), kNobody, kNobody), 0);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    EXPECT_EQ(::lchown(entry.path().c_str(), kNobody, kNobody), 0);
  }
}

// What `body` returns in a process of another user, for whom permissions count.
inline std::string as_other_user(const std::function<std::string()>& body) {
  Pipe pipe = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_done = become_other_user() && write_all(pipe.write.get(), body());
    ::_exit(is_done ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  pipe.write = Fd();
  std::string answer = read_all(pipe.read.get()).value_or("");
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return answer;
}

}  // namespace tandem

#include <c10/util/Exception.h>
#include <malloc.h>
#include <tandem/error.h>
#include <tandem/run_worker.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

namespace tandem {
namespace {

int report(const std::exception& error, const std::string& where) {
  write_all(STDERR_FILENO, describe(error, where));
  return exit_code(error);
}

// What one step frees, the next one needs again. Given back to the kernel, it comes again page by page, each of them
// cleared: 4 % of the step of a small GPT. Blocks above 32 MiB, the most that glibc allows, are still given back.
void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

}  // namespace

int run_worker(const std::function<void(const World& world)>& body) {
  std::string where;
  try {
    keep_freed_memory();
    const World world = current_world();
    where = str("rank ", world.rank, " of ", world.size);
    body(world);
    return 0;
  } catch (const c10::OutOfMemoryError& error) {
    return report(Error(ErrorKind::Device, error.what_without_backtrace(), "use a smaller batch"), where);
  } catch (const c10::Error& error) {
    return report(Error(ErrorKind::Internal, error.what_without_backtrace(), ""), where);
  } catch (const std::exception& error) {
    return report(error, where);
  }
}

}  // namespace tandem

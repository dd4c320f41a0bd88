#include <c10/util/Exception.h>
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

}  // namespace

int run_worker(const std::function<void(const World& world)>& body) {
  std::string where;
  try {
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

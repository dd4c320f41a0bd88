#include <c10/util/Exception.h>
#include <malloc.h>
#include <tandem/communicator.h>
#include <tandem/error.h>
#include <tandem/run_worker.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <new>
#include <span>
#include <utility>

#include "base/fd.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "build_facts.h"
#include "train/run_files.h"
#include "train/run_folder.h"
#include "train/self_launch.h"

namespace tandem {
namespace {

int report(const std::exception& error, const std::string& where) {
  write_all(STDERR_FILENO, describe(error, where));
  return exit_code(error);
}

Error out_of_memory(const std::string& message) { return {ErrorKind::Device, message, "use a smaller batch"}; }

// Runs `body` and returns the exit code. `body` sets `where`, which error messages show: "rank 1 of 2".
int code_of(const std::function<void(std::string& where)>& body) {
  fill_closed_streams();
  std::string where;
  try {
    body(where);
    return 0;
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    const bool is_memory = dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
                           message.find("can't allocate memory") != std::string::npos;  // of the CPU
    return report(is_memory ? out_of_memory(message) : Error(ErrorKind::Internal, message, ""), where);
  } catch (const std::bad_alloc&) {
    return report(out_of_memory("not enough memory on this machine"), where);
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string message = str("cannot use ", error.path1(), ": ", error.code().message());
    return report(Error(ErrorKind::Data, message, "check the path and its permissions"), where);
  } catch (const std::exception& error) {
    return report(error, where);
  } catch (...) {
    return report(Error(ErrorKind::Internal, "the program threw something that is no std::exception",
                        "throw a std::runtime_error, or a tandem::Error with a hint"),
                  where);
  }
}

std::string place_text(const World& world) { return str("rank ", world.rank, " of ", world.size); }

// What one step frees, the next one allocates again. Returned to the kernel, it would be faulted in and zeroed page by
// page: 4 % of the step of a small GPT. Blocks above 32 MiB, the maximum of glibc, are still returned.
void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

// A file gets every byte; a terminal none that could change more than the text on it.
void print(const std::string& text) {
  if (write_all(STDOUT_FILENO, ::isatty(STDOUT_FILENO) == 1 ? printable_text(text) : text)) return;
  fail(ErrorKind::Data, str("cannot write to standard output: ", errno_text(errno)), "check where it is sent");
}

void note_device(const RankOptions& options, const WorkerEnv& env, bool is_on_cpu) {
  write_all(STDERR_FILENO, device_note(options, env, is_on_cpu));
}

// Rank 0 creates it, so that all ranks have the same one, also on several hosts.
std::filesystem::path open_run_folder(const RunRequest& request, const WorkerEnv& env, WallTime now,
                                      Communicator& comm) {
  const bool is_main = comm.world().is_main();
  return comm.all_gather_bytes(is_main ? make_run_folder(request, env, now).native() : "").front();
}

// A host that does not see the folder of the run that is resumed does not have its settings.
void check_same_settings(const RunRequest& request, Communicator& comm) {
  if (comm.world().num_nodes == 1 || request.resume().is_new_run()) return;
  const std::vector<std::string> settings = comm.all_gather_bytes(config_yaml(request.fields));
  if (std::ranges::count(settings, settings.front()) == std::ssize(settings)) return;
  fail(ErrorKind::Config, "resume: the settings of the hosts differ",
       "start with the same flags on each, and share the folder of the run, or give all of its settings as flags");
}

// A run that does not begin leaves no empty folder behind.
void train_in_folder(const RunRequest& request, const WorkerEnv& env, Communicator comm,
                     const AcceleratorOptions& options, const std::function<void(Accelerator&)>& body) {
  check_same_settings(request, comm);
  const WallTime now = std::chrono::system_clock::now();
  const NewFolders new_folders(request.options);
  const std::filesystem::path folder = open_run_folder(request, env, now, comm);
  const bool is_main = comm.world().is_main();
  const Fd lock = is_main ? lock_run_folder(folder) : Fd();
  const std::vector<std::string> devices = comm.all_gather_bytes(comm.device().str());
  bool has_begun = false;
  RunPlace place{.folder = folder,
                 .settings = config_table(request.fields),
                 .resume_command = resume_command(folder, request, env),
                 .record_start = [&] {
                   record_start(folder, request, env, devices, now);
                   has_begun = true;
                 }};
  for (const Field& field : request.fields) {
    if (field.is_proposed()) place.proposed.push_back(field.name);
  }
  try {
    Accelerator accelerator(std::move(comm), options, place);
    body(accelerator);
    accelerator.close();
  } catch (...) {
    if (is_main && !has_begun) new_folders.remove_if_empty(folder);
    throw;
  }
}

// The folder is created before the ranks, since the launcher writes their output into it.
Variables prepare_launch(const RunRequest& request, const WorkerEnv& env) {
  if (!kTorchHasCuda) note_device(request.options.ranks, env, true);
  const std::filesystem::path folder = make_run_folder(request, env, std::chrono::system_clock::now());
  lock_run_folder(folder);  // briefly: an Error if another run uses it, before the launcher writes to its logs
  return {{"TANDEM_RUN_FOLDER", folder}, {"TANDEM_LOG_DIR", folder / kLogsFolder}};
}

}  // namespace

int run_worker(const std::function<void(const World& world)>& body) {
  return code_of([&](std::string& where) {
    keep_freed_memory();
    const WorkerEnv env = read_worker_env();
    where = place_text(env.world);
    if (!kTorchHasCuda) note_device({}, env, true);
    body(env.world);
  });
}

int run_command(const std::function<std::string()>& body) {
  return code_of([&](std::string&) { print(body()); });
}

int detail::run_worker(const CommandWords& command, const ProgramText& program, const WorkerOptions& options,
                       const std::function<void(Accelerator&)>& body) {
  return code_of([&](std::string& where) {
    const WorkerEnv env = read_worker_env();
    if (env.is_launched) where = place_text(env.world);
    const LoadedConfig loaded = load_fields(options.fields, command.flags(), program, options.validate,
                                            [&](std::span<const Field> given) { return earlier_settings(given, env); });
    if (loaded.text) return print(*loaded.text);
    const RunRequest request{program.name, command.words, options.accelerator.run, loaded.fields, command.first_flag};
    write_all(STDERR_FILENO, check_resumed_run(request, env));
    launch_if_needed(options.accelerator.run.ranks, command.words, env, [&] { return prepare_launch(request, env); });
    std::signal(SIGPIPE, SIG_IGN);  // a closed output must not end hours of training
    where = place_text(env.world);
    keep_freed_memory();
    Communicator comm = Communicator::join(options.accelerator.comm);
    note_device(options.accelerator.run.ranks, env, comm.device().is_cpu());
    train_in_folder(request, env, std::move(comm), options.accelerator, body);
  });
}

int detail::run_worker(const CommandWords& command, const ProgramText& program, const RankedOptions& options,
                       const std::function<std::string(Communicator&)>& body) {
  return code_of([&](std::string& where) {
    const WorkerEnv env = read_worker_env();
    if (env.is_launched) where = place_text(env.world);
    const LoadedConfig loaded = load_fields(options.fields, command.flags(), program, options.validate);
    if (loaded.text) return print(*loaded.text);
    launch_if_needed(options.ranks, command.words, env, [&] {
      if (!kTorchHasCuda) note_device(options.ranks, env, true);
      return Variables();
    });
    where = env.world.size > 1 ? place_text(env.world) : "";
    keep_freed_memory();
    Communicator comm = Communicator::join(options.comm);
    note_device(options.ranks, env, comm.device().is_cpu());
    const std::string result = body(comm);
    if (comm.world().is_main()) print(result);
  });
}

}  // namespace tandem

#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tandem/config.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <optional>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "monitor/append_file.h"
#include "train/find_run.h"
#include "train/resume.h"
#include "train/run_environment.h"
#include "train/run_files.h"
#include "train/typed_command.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_make(const fs::path& folder, const std::string& why) {
  fail(ErrorKind::Data, str("run folder: cannot create ", folder, ": ", why),
       "give a writable --run-dir DIR, or another --name");
}

// Returns whether the folder is new.
bool make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0777) == 0) return true;
  const int error = errno;
  std::error_code ignored;
  if (error == EEXIST && fs::is_directory(folder, ignored)) return false;
  fail_to_make(folder, errno_text(error));
}

// mkdir is atomic: of two runs that start in the same second, one gets the name and the other "-2".
fs::path make_new_folder(const fs::path& wanted) {
  fs::path folder = wanted;
  for (int number = 2; !make_folder(folder); ++number) folder = str(wanted, '-', number);
  return folder;
}

// "tandem summarize" becomes "summarize"; characters other than letters, digits, _, - and . become dashes.
std::string plain_name(std::string name) {
  constexpr std::string_view kTandem = "tandem ";
  if (name.starts_with(kTandem)) name.erase(0, kTandem.size());
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '_' && c != '-' && c != '.'; }, '-');
  return name.empty() || name.front() == '.' ? str("run", name) : name;
}

// "20261115-052343"
std::string time_name(WallTime now) {
  std::string text = utc_text(now).substr(0, 19);
  for (const char* mark : {"-", ":"}) text = replace_all(text, mark, "");
  return replace_all(text, "T", "-");
}

// The launcher's name for this run; empty: it has no unique one.
std::string name_by_launcher(const WorkerEnv& env, const std::string& program) {
  if (!env.tandem_run_id.empty()) return env.tandem_run_id.substr(env.tandem_run_id.rfind('/') + 1);
  return env.run_id == WorkerEnv{}.run_id ? "" : str(program, '-', plain_name(env.run_id));
}

fs::path find_run(const fs::path& run_dir, const std::string& name) {
  std::error_code no_link;
  std::error_code ignored;
  const fs::path target = fs::read_symlink(run_dir / name, no_link);
  fs::path folder = run_dir / (no_link ? fs::path(name) : target);
  if (fs::is_directory(folder, ignored)) return folder;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_dir, ignored)) {
    if (entry.path().filename() != kLatestRun) names.push_back(entry.path().filename());
  }
  const auto meant = nearest(name, names);
  fail(ErrorKind::Checkpoint, str("resume: no run to resume: ", run_dir / name, " not found"),
       meant ? str("did you mean --name ", shell_quoted(*meant), '?')
             : "start one without --resume, or give --run-dir and --name");
}

fs::path choose_folder(const RunRequest& request, const WorkerEnv& env, const fs::path& run_dir, WallTime now) {
  const std::string& name = request.options.name;
  if (request.resume().from == ResumeRequest::From::Latest) return find_run(run_dir, name.empty() ? kLatestRun : name);
  const std::string program = plain_name(request.program);
  const std::string known_name = name.empty() ? name_by_launcher(env, program) : name;
  // torchrun without an id: the previous attempt has set `latest`.
  if (known_name.empty() && env.restart_count > 0) return find_run(run_dir, kLatestRun);

  std::error_code error;
  fs::create_directories(run_dir, error);
  if (error) fail_to_make(run_dir, error.message());
  if (known_name.empty()) return make_new_folder(run_dir / str(program, '-', time_name(now)));
  make_folder(run_dir / known_name);
  return run_dir / known_name;
}

// Only a convenience: without symbolic links, or if `latest` is not a link, there is none.
void point_latest_to(const fs::path& folder) {
  const fs::path latest = folder.parent_path() / kLatestRun;
  const fs::path temporary = folder.parent_path() / str('.', kLatestRun, '-', ::getpid());
  std::error_code error;
  if (latest == folder || (fs::exists(fs::symlink_status(latest, error)) && !fs::is_symlink(latest, error))) return;
  fs::remove(temporary, error);
  fs::create_symlink(folder.filename(), temporary, error);
  if (!error) fs::rename(temporary, latest, error);
  if (error) fs::remove(temporary, error);
}

// What the first start of a run has chosen, for its restarts.
struct Choice {
  fs::path folder;
  std::string resume;
};

// The launcher's log folder is the same for all starts of a run and belongs to this run only.
fs::path choice_file(const WorkerEnv& env) { return fs::path(env.log_dir) / "run_folder.txt"; }

// When a restart happens, `latest` may point to another run.
void remember_choice(const WorkerEnv& env, const Choice& choice) {
  if (env.log_dir.empty()) {
    point_latest_to(choice.folder);  // torchrun: the only way for a restart to find it
  } else {
    replace_file(choice_file(env), str(choice.folder, '\n', choice.resume, '\n'), ErrorKind::Checkpoint);
  }
}

std::optional<Choice> first_choice(const WorkerEnv& env) {
  const auto text = env.log_dir.empty() ? std::nullopt : read_if_there(choice_file(env));
  const std::vector<std::string> lines = split(text.value_or(""), '\n');
  if (lines.size() < 2) return std::nullopt;
  return Choice{lines[0], lines[1]};
}

void set_resume(const RunRequest& request, const std::string& resume) {
  const auto field = std::ranges::find(request.fields, "resume", &Field::name);
  if (field != request.fields.end()) field->set(resume);
}

// The run may be resumed in another folder. A name that is no path here ("gpt2") stays.
void make_absolute(Field& field) {
  const Written value = field.get();
  const auto* text = std::get_if<std::string>(&value);
  std::error_code missing;
  if (!field.is_path || !field.is_given || text == nullptr || text->empty() || !fs::exists(*text, missing)) return;
  field.get = [whole = Written(whole_path(*text).native())] { return whole; };
}

// A run with this file as --config must neither resume this run nor write into its folder.
std::string reusable_config(const RunRequest& request) {
  std::vector<Field> fields = request.fields;
  std::erase_if(fields, [&](const Field& field) {
    return field.name == "name" || field.name == "detach" ||
           (field.name == "resume" && request.resume().from == ResumeRequest::From::Latest);
  });
  for (Field& field : fields) {
    if (field.name != "run-dir") make_absolute(field);
  }
  return config_yaml(fields);
}

// " --device 0,1" for GPUs, " --device cpu" if all ranks use the CPU.
std::string device_flag(const std::vector<std::string>& devices) {
  if (devices.empty()) return "";
  const std::string list = replace_all(join(devices, ","), "cuda:", "");
  return str(" --device ", std::ranges::count(devices, "cpu") == std::ssize(devices) ? "cpu" : list);
}

// A command for a shell that starts the same ranks. A program that launched itself needs no launcher.
std::string paste_text(const std::string& program, std::span<const std::string> words, const WorkerEnv& env) {
  std::string command = words.empty() ? program : str(program, ' ', command_line(words));
  const bool by_launcher = env.is_launched && env.run_folder.empty();
  if (!by_launcher) return command;
  return str("tandem run -n ", env.world.local_size, device_flag(env.devices), ' ', command);
}

std::string start_line(const RunRequest& request, const WorkerEnv& env, WallTime now) {
  const std::string restart = env.restart_count > 0 ? str(", restart ", env.restart_count) : "";
  const std::span<const std::string> words = request.command;
  return str(paste_text(shell_quoted(words.front()), words.subspan(1), env), "  # ", utc_text(now), restart, '\n');
}

std::string given_text(std::span<const Field> fields, const char* name) {
  const auto field = std::ranges::find(fields, name, &Field::name);
  const Written value = field == fields.end() ? Written() : field->get();
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? "" : *text;
}

// The run whose settings --resume continues with; empty: none.
fs::path run_to_continue(std::span<const Field> given, const WorkerEnv& env) {
  const std::string resume = given_text(given, "resume");
  const ResumeRequest request = resume.empty() ? ResumeRequest() : parse_resume(resume);
  if (request.from == ResumeRequest::From::Path) return run_of(request.path);
  if (request.from != ResumeRequest::From::Latest) return {};
  if (!env.run_folder.empty()) return env.run_folder;
  if (const auto first = env.restart_count > 0 ? first_choice(env) : std::nullopt) return first->folder;
  const std::string name = given_text(given, "name");
  return fs::path(given_text(given, "run-dir")) / (name.empty() ? kLatestRun : name);
}

// The highest folder of the path that does not exist; empty: all do.
fs::path first_missing(const fs::path& path) {
  std::error_code unknown;
  fs::path missing;
  for (fs::path folder = path; !fs::exists(folder, unknown) && folder.has_relative_path();
       folder = folder.parent_path())
    missing = folder;
  return missing;
}

}  // namespace

void validate(const RunOptions& o) {
  if (o.run_dir.empty()) fail(ErrorKind::Config, "run-dir is empty", "give a folder; '.' is the current one");
  if (std::ranges::any_of(o.name, [](unsigned char c) { return std::iscntrl(c) != 0; })) {
    fail(ErrorKind::Config, "name contains a control character", "use letters, digits, '-', '_' and '.'");
  }
  const bool is_place =
      o.name.find('/') != std::string::npos || o.name == "." || o.name == ".." || o.name == kLatestRun;
  if (is_place) {
    fail(ErrorKind::Config, str("name is '", o.name, "', which is not a valid folder name"),
         "give a name without '/'; --run-dir sets the parent folder");
  }
}

ResumeRequest RunRequest::resume() const {
  const std::string text = given_text(fields, "resume");
  return text.empty() ? ResumeRequest() : parse_resume(text);
}

std::optional<EarlierSettings> earlier_settings(std::span<const Field> given, const WorkerEnv& env) {
  const fs::path run = run_to_continue(given, env);
  std::error_code missing;
  if (run.empty() || !fs::exists(run / kConfigFile, missing)) return std::nullopt;
  EarlierSettings earlier{run / kConfigFile, {"name", "run-dir", "resume", "json"}};
  const bool by_launcher = env.is_launched && env.run_folder.empty();
  if (by_launcher) earlier.left_out.insert(earlier.left_out.end(), {"nproc", "device"});
  return earlier;
}

std::string check_resumed_run(const RunRequest& request, const WorkerEnv& env) {
  using From = ResumeRequest::From;
  const ResumeRequest resume = request.resume();
  const bool is_known = resume.from != From::Path && resume.from != From::Latest;
  const bool is_checked = env.restart_count > 0 || !env.run_folder.empty();
  if (is_known || is_checked || env.world.rank > 0) return "";  // another host may not see the folder
  const fs::path run = run_to_continue(request.fields, env);
  std::error_code unknown;
  if (resume.from == From::Path && !fs::exists(resume.path, unknown)) {
    const auto meant = nearest(resume.path.native(), std::vector<std::string>{"auto", "latest", "no", "weights"});
    fail(ErrorKind::Checkpoint, str("resume: ", resume.path, " not found"),
         meant ? str("did you mean --resume ", *meant, '?') : kResumeTakes);
  }
  if (!fs::exists(run, unknown) || fs::exists(run / kConfigFile, unknown)) return "";
  const bool is_run = fs::is_directory(run / kCheckpointsFolder, unknown);
  const FoundCheckpoint found = find_checkpoint(is_run                      ? run / kCheckpointsFolder
                                                : resume.from == From::Path ? resume.path
                                                                            : run);
  if (!found.path && found.passed_over.empty()) {
    fail(ErrorKind::Checkpoint, str("resume: ", run, " has neither settings (", kConfigFile, ") nor checkpoints"),
         kResumeTakes);
  }
  return str("note: ", run, " has no ", kConfigFile, ": its settings are those that are given\n");
}

NewFolders::NewFolders(const RunOptions& options)
    : first_(first_missing(whole_path(options.run_dir / options.name))), is_named_(!options.name.empty()) {}

void NewFolders::remove_if_empty(const fs::path& folder) const {
  if (is_named_ && first_.empty()) return;
  std::error_code not_empty;
  fs::remove(folder / kCheckpointsFolder, not_empty);
  for (fs::path path = folder; fs::remove(path, not_empty) && !first_.empty() && path != first_;) {
    path = path.parent_path();
  }
}

fs::path make_run_folder(const RunRequest& request, const WorkerEnv& env, WallTime now) {
  if (const auto first = env.restart_count > 0 ? first_choice(env) : std::nullopt) {
    set_resume(request, first->resume);
    fs::create_directories(first->folder);  // the first start removes it if it fails before the run begins
    return first->folder;
  }
  const fs::path run_dir = fs::absolute(request.options.run_dir);
  if (request.resume().from == ResumeRequest::From::LatestWeights) {
    set_resume(request, resume_text({ResumeRequest::From::Weights, find_run(run_dir, kLatestRun)}));
  }
  fs::path folder = env.run_folder.empty() ? choose_folder(request, env, run_dir, now) : fs::path(env.run_folder);
  if (env.max_restarts > 0) remember_choice(env, {folder, resume_text(request.resume())});
  return folder;
}

void record_start(const fs::path& folder, const RunRequest& request, const WorkerEnv& env,
                  const std::vector<std::string>& devices, WallTime now) {
  replace_file(folder / kConfigFile, reusable_config(request), ErrorKind::Checkpoint);
  replace_file(folder / kEnvironmentFile, str(json_text_indented(run_environment(env, devices)), '\n'),
               ErrorKind::Checkpoint);
  AppendFile commands(folder / kCommandsFile);
  commands.drop_torn_line();
  commands.append(start_line(request, env, now));
  point_latest_to(folder);
}

Fd lock_run_folder(const fs::path& folder) {
  Fd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return lock;
  fail(ErrorKind::Checkpoint, str("run folder: another run is writing to ", folder),
       "wait until it ends, or give this run another --name");
}

std::string resume_command(const fs::path& folder, const RunRequest& request, const WorkerEnv& env) {
  const std::span<const std::string> given = std::span(request.command).first(request.first_flag).subspan(1);
  std::vector<std::string> flags(given.begin(), given.end());
  const fs::path& run_dir = request.options.run_dir;
  if (run_dir != RunOptions().run_dir) flags.insert(flags.end(), {"--run-dir", run_dir});
  flags.insert(flags.end(), {"--name", folder.filename(), "--resume", "latest"});
  return paste_text(typed_program(request.command.front()), flags, env);
}

}  // namespace tandem

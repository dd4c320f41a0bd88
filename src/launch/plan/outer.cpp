#include "launch/plan/outer.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <string_view>

#include "base/text.h"

namespace tandem {
namespace {

[[noreturn]] void refuse_variables(const std::string& launcher, const std::string& fault) {
  fail(ErrorKind::Launch, str(launcher, "'s environment: ", fault),
       "start it through that launcher, or unset these variables to start a separate run");
}

// Reads the variables of one launcher.
class Reader {
 public:
  Reader(const Lookup& lookup, std::string launcher) : lookup_(lookup), launcher_(std::move(launcher)) {}

  std::string text(const char* name) const {
    const auto value = lookup_(name);
    if (!value) refuse_variables(launcher_, str(name, " is not set"));
    return *value;
  }

  int number(const char* name) const {
    const std::string value = text(name);
    const auto number = to_unsigned(value);
    if (!number || *number > INT_MAX) refuse_variables(launcher_, str(name, "='", value, "' is not a whole number"));
    return static_cast<int>(*number);
  }

  bool has(const char* name) const { return lookup_(name).has_value(); }

  // The newer name, or the older one where only that is set.
  const char* either(const char* name, const char* other) const { return has(name) ? name : other; }

  const std::string& launcher() const { return launcher_; }

 private:
  const Lookup& lookup_;
  std::string launcher_;
};

OuterJob checked(OuterJob job) {
  const auto check = [&](const char* name, int value, int size) {
    if (value >= size) refuse_variables(job.launcher, str(name, " is ", value, ", must be below ", size));
  };
  check("rank", job.rank, job.size);
  check("local rank", job.local_rank, job.local_size);
  check("node", job.node, job.num_nodes);
  if (job.local_size > job.size)
    refuse_variables(job.launcher, str(job.local_size, " local ranks, but only ", job.size, " ranks"));
  return job;
}

// Below the kernel's range of ephemeral ports, so that no other program gets it by chance.
int port_for(std::uint64_t number) { return 20000 + static_cast<int>(number % 10000); }

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  return hash;
}

bool is_torchrun(const Lookup& lookup) {
  constexpr std::array kNames = {"RANK",        "WORLD_SIZE",  "LOCAL_RANK",         "LOCAL_WORLD_SIZE",
                                 "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"};
  return std::ranges::all_of(kNames, [&](const char* name) { return lookup(name).has_value(); });
}

OuterJob read_torchrun(const Lookup& lookup) {
  const Reader reader(lookup, "torchrun");
  OuterJob job{.launcher = reader.launcher(),
               .rank = reader.number("RANK"),
               .size = reader.number("WORLD_SIZE"),
               .local_rank = reader.number("LOCAL_RANK"),
               .local_size = reader.number("LOCAL_WORLD_SIZE"),
               .node = reader.has("GROUP_RANK") ? reader.number("GROUP_RANK") : 0,
               .num_nodes = reader.has("GROUP_WORLD_SIZE") ? reader.number("GROUP_WORLD_SIZE") : 1,
               .master_addr = reader.text("MASTER_ADDR"),
               .master_port = reader.number("MASTER_PORT")};
  return checked(std::move(job));
}

// The variables of one family of MPI launchers.
struct MpiNames {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

constexpr std::array kMpiFamilies = {
    MpiNames{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
             "OMPI_COMM_WORLD_LOCAL_SIZE"},
    MpiNames{"MPI", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
             "MV2_COMM_WORLD_LOCAL_SIZE"},
    MpiNames{"MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

// The launcher's job id is the same in all tasks of a job, and differs between jobs.
int mpi_port(const Lookup& lookup) {
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"}) {
    if (const auto id = lookup(name)) return port_for(fnv1a(*id));
  }
  return port_for(0);
}

OuterJob read_mpi(const Lookup& lookup, const MpiNames& names) {
  const Reader reader(lookup, names.launcher);
  OuterJob job{.launcher = reader.launcher(),
               .rank = reader.number(names.rank),
               .size = reader.number(names.size),
               .local_rank = reader.number(names.local_rank),
               .local_size = std::max(1, reader.number(names.local_size))};
  job.node = job.rank / job.local_size;
  job.num_nodes = (job.size + job.local_size - 1) / job.local_size;
  job.master_addr = job.num_nodes == 1 ? "127.0.0.1" : "";
  job.master_port = mpi_port(lookup);
  return checked(std::move(job));
}

// srun starts a step. The script of sbatch and the shell of salloc have no step id, or one of the highest numbers,
// which Slurm reserves for them.
bool is_slurm_step(const Lookup& lookup) {
  constexpr unsigned long long kFirstReserved = 0xffff'fff0;
  const auto step = lookup("SLURM_STEP_ID");
  return step && lookup("SLURM_PROCID") && to_unsigned(*step).value_or(0) < kFirstReserved;
}

// The number of tasks on a node, from a list such as "2(x3),1": three nodes with two tasks each, then one with one.
int slurm_local_size(const Reader& reader, int node) {
  const std::string list = reader.text(reader.either("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"));
  unsigned long long first_node_after = 0;
  for (const std::string& part : split(list, ',')) {
    const std::size_t bracket = part.find("(x");
    const auto tasks = to_unsigned(std::string_view(part).substr(0, bracket));
    const bool is_repeated = bracket != part.npos && part.ends_with(')');
    const auto nodes = is_repeated ? to_unsigned(part.substr(bracket + 2, part.size() - bracket - 3)) : 1;
    if (!tasks || *tasks > INT_MAX || !nodes || (bracket != part.npos && !is_repeated)) {
      refuse_variables(reader.launcher(), str("tasks per node '", list, "' cannot be parsed"));
    }
    first_node_after += *nodes;
    if (static_cast<unsigned long long>(node) < first_node_after) return static_cast<int>(*tasks);
  }
  refuse_variables(reader.launcher(), str("tasks per node '", list, "' has no entry for node ", node));
}

// The first host of a node list: gpu003 of "gpu[003-005,9],login1", rack1n0 of "rack[1-2]n[0-7]".
std::string first_host(const Reader& reader, std::string_view list) {
  std::string host;
  for (std::size_t at = 0; at < list.size() && list[at] != ','; ++at) {
    if (list[at] != '[') {
      host += list[at];
      continue;
    }
    const std::size_t end = list.find(']', at);
    if (end == list.npos) refuse_variables(reader.launcher(), str("node list '", list, "' cannot be parsed"));
    host += list.substr(at + 1, list.find_first_of("-,]", at) - at - 1);
    at = end;
  }
  return host;
}

OuterJob read_slurm(const Lookup& lookup) {
  const Reader reader(lookup, "Slurm");
  OuterJob job{.launcher = reader.launcher(),
               .rank = reader.number("SLURM_PROCID"),
               .size = reader.number(reader.either("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")),
               .local_rank = reader.number("SLURM_LOCALID"),
               .node = reader.number("SLURM_NODEID"),
               .num_nodes = reader.number(reader.either("SLURM_STEP_NUM_NODES", "SLURM_NNODES"))};
  job.local_size = slurm_local_size(reader, job.node);
  // On one node the loopback address works even where the host cannot resolve its own name.
  const std::string nodes = reader.text(reader.either("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"));
  job.master_addr = job.num_nodes == 1 ? "127.0.0.1" : first_host(reader, nodes);
  // Steps of one job may run side by side.
  const auto job_id = static_cast<std::uint64_t>(reader.number(reader.either("SLURM_JOB_ID", "SLURM_JOBID")));
  const auto step = static_cast<std::uint64_t>(reader.number("SLURM_STEP_ID"));
  job.master_port = port_for(job_id + 137 * step);
  return checked(std::move(job));
}

}  // namespace

OuterJob read_outer_job(const Lookup& lookup) {
  if (lookup("TANDEM_RUN_ID")) return {};
  if (is_torchrun(lookup)) return read_torchrun(lookup);
  const bool in_step = is_slurm_step(lookup);
  for (const MpiNames& names : kMpiFamilies) {
    // srun sets PMI_RANK too. Under mpirun inside a Slurm step, the tasks have MPI's local rank as well.
    if (lookup(names.rank) && (!in_step || lookup(names.local_rank))) return read_mpi(lookup, names);
  }
  return in_step ? read_slurm(lookup) : OuterJob{};
}

}  // namespace tandem

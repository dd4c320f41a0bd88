#include "launch/plan/hosts.h"

#include <tandem/error.h>

#include "base/text.h"

namespace tandem {
namespace {

constexpr int kDefaultPort = 29500;

Endpoint endpoint_of(const HostOptions& hosts) {
  Endpoint endpoint = parse_endpoint(hosts.rdzv_endpoint).value_or(Endpoint{});
  if (endpoint.host.empty()) endpoint.host = hosts.master_addr.value_or("");
  if (!endpoint.port) endpoint.port = hosts.master_port;
  return endpoint;
}

// Several tasks per host are the ranks themselves; with one task per host, each task launches the ranks of its host.
bool joins_outer(const LaunchOptions& options, const OuterJob& outer) {
  if (outer.launcher.empty() || options.hosts.nnodes || options.hosts.standalone) return false;
  const bool counted = options.placement.nproc_per_node.given();
  if (outer.launcher == "torchrun") return !counted;
  if (outer.one_task_per_node()) return false;
  if (!counted) return true;
  fail(ErrorKind::Usage,
       str("tandem run: nproc-per-node is set, but ", outer.launcher, " has already started ", outer.local_size,
           " tasks on this host"),
       "start one task per host, leave out -n to make each task a rank, or add --standalone for separate runs");
}

HostPlan join_outer(const Endpoint& endpoint, const OuterJob& outer) {
  HostPlan plan{.joins = true, .node = outer.node, .num_nodes = outer.num_nodes};
  plan.master_addr = !endpoint.host.empty() ? endpoint.host : outer.master_addr;
  if (plan.master_addr.empty() && outer.num_nodes > 1) {
    fail(ErrorKind::Launch, str("tandem run: ", outer.launcher, " does not provide the address of rank 0"),
         "add --master-addr HOST");
  }
  if (plan.master_addr.empty()) plan.master_addr = HostPlan{}.master_addr;
  plan.master_port = endpoint.port.value_or(outer.master_port != 0 ? outer.master_port : kDefaultPort);
  plan.notes.push_back(str("this ", outer.launcher, " task is rank ", outer.rank, " of ", outer.size));
  return plan;
}

HostPlan one_host(const HostOptions& hosts, const Endpoint& endpoint) {
  HostPlan plan;
  const bool any_port = hosts.standalone || hosts.rdzv_backend == "c10d";
  if (any_port) {
    plan.master_addr = hosts.local_addr.value_or(plan.master_addr);
    if (endpoint.port.value_or(0) != 0) {
      plan.notes.push_back(str("port ", *endpoint.port, " is not used: a standalone run takes a free port"));
    }
    return plan;
  }
  plan.master_addr = !endpoint.host.empty() ? endpoint.host : hosts.local_addr.value_or(plan.master_addr);
  plan.master_port = endpoint.port.value_or(0);
  return plan;
}

HostPlan several_hosts(const HostOptions& hosts, const Endpoint& endpoint, const OuterJob& outer, int num_nodes) {
  const bool by_outer = !hosts.nnodes;
  HostPlan plan{.node = hosts.node_rank.value_or(by_outer ? outer.node : 0), .num_nodes = num_nodes};
  plan.master_addr = !endpoint.host.empty() ? endpoint.host : by_outer ? outer.master_addr : "";
  if (plan.master_addr.empty()) {
    fail(ErrorKind::Usage, str("nnodes is ", num_nodes, ", but master-addr is not set"),
         "give every host the same --master-addr HOST, the address of host 0");
  }
  if (!hosts.node_rank && !by_outer && hosts.rdzv_backend == "c10d") {
    fail(ErrorKind::Usage, str("rdzv-backend is c10d with ", num_nodes, " hosts, but node-rank is not set"),
         str("give each host its own --node-rank, 0 to ", num_nodes - 1));
  }
  plan.master_port = endpoint.port.value_or(by_outer && outer.master_port != 0 ? outer.master_port : kDefaultPort);
  if (plan.master_port == 0) {
    fail(ErrorKind::Usage, str("master-port is 0, but ", num_nodes, " hosts need a fixed port"),
         str("give every host the same --master-port, such as ", kDefaultPort));
  }
  if (by_outer) {
    plan.notes.push_back(str("host ", plan.node, " of ", num_nodes, " (from ", outer.launcher, "), master address ",
                             plan.master_addr, ':', plan.master_port));
  }
  if (hosts.local_addr)
    plan.notes.emplace_back("local-addr has no effect with several hosts: they connect to the master address");
  return plan;
}

}  // namespace

HostPlan plan_hosts(const LaunchOptions& options, Dialect dialect, const OuterJob& outer) {
  const HostOptions& hosts = options.hosts;
  const OuterJob job = dialect == Dialect::Tandem ? outer : OuterJob{};
  const Endpoint endpoint = endpoint_of(hosts);
  if (joins_outer(options, job)) return join_outer(endpoint, job);

  const bool by_outer = !hosts.nnodes && !hosts.standalone && job.launcher != "torchrun";
  const int num_nodes = hosts.nnodes ? hosts.nnodes->max : by_outer ? job.num_nodes : 1;
  HostPlan plan = num_nodes == 1 ? one_host(hosts, endpoint) : several_hosts(hosts, endpoint, job, num_nodes);
  if (num_nodes == 1 && hosts.node_rank.value_or(0) != 0) {
    fail(ErrorKind::Usage, str("node-rank is ", *hosts.node_rank, ", but there is only one host"), "add --nnodes");
  }
  if (options.accelerate.same_network.value == false && num_nodes > 1) {
    plan.notes.push_back(str("same_network: false has no effect: all hosts connect to ", plan.master_addr));
  }
  if (!hosts.rdzv_conf.empty()) plan.notes.emplace_back("rdzv-conf has no effect: there is no rendezvous to wait for");
  return plan;
}

}  // namespace tandem

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

// Several tasks of the outer launcher on each host are ranks already; one task for each host is a launcher there.
bool joins_outer(const LaunchOptions& options, const OuterJob& outer) {
  if (outer.launcher.empty() || options.hosts.nnodes || options.hosts.standalone) return false;
  const bool counted = options.placement.nproc_per_node.given();
  if (outer.launcher == "torchrun") return !counted;
  if (outer.one_task_per_node()) return false;
  if (!counted) return true;
  fail(ErrorKind::Usage,
       str("tandem run: nproc-per-node was given, and ", outer.launcher, " has started ", outer.local_size,
           " tasks on this host already"),
       "start one task on each host, or leave out -n to make each task a rank, or say --standalone for separate runs");
}

HostPlan join_outer(const Endpoint& endpoint, const OuterJob& outer) {
  HostPlan plan{.joins = true, .node = outer.node, .num_nodes = outer.num_nodes};
  plan.master_addr = !endpoint.host.empty() ? endpoint.host : outer.master_addr;
  if (plan.master_addr.empty() && outer.num_nodes > 1) {
    fail(ErrorKind::Launch, str("tandem run: ", outer.launcher, " does not say where rank 0 is"),
         "name its host: --master-addr HOST");
  }
  if (plan.master_addr.empty()) plan.master_addr = HostPlan{}.master_addr;
  plan.master_port = endpoint.port.value_or(outer.master_port != 0 ? outer.master_port : kDefaultPort);
  plan.notes.push_back(str("this task of ", outer.launcher, " is rank ", outer.rank, " of ", outer.size));
  return plan;
}

HostPlan one_host(const HostOptions& hosts, const Endpoint& endpoint) {
  HostPlan plan;
  const bool any_port = hosts.standalone || hosts.rdzv_backend == "c10d";
  if (any_port) {
    plan.master_addr = hosts.local_addr.value_or(plan.master_addr);
    if (endpoint.port.value_or(0) != 0) {
      plan.notes.push_back(str("port ", *endpoint.port, " was not needed: a free one is taken, so runs never collide"));
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
    fail(ErrorKind::Usage, str("there are ", num_nodes, " hosts, and master-addr does not say where they meet"),
         "give every host the same --master-addr HOST, the address of host 0");
  }
  if (!hosts.node_rank && !by_outer && hosts.rdzv_backend == "c10d") {
    fail(ErrorKind::Usage, str("rdzv-backend is c10d with ", num_nodes, " hosts, and node-rank is not given"),
         str("give each host its own --node-rank, 0 to ", num_nodes - 1));
  }
  plan.master_port = endpoint.port.value_or(by_outer && outer.master_port != 0 ? outer.master_port : kDefaultPort);
  if (plan.master_port == 0) {
    fail(ErrorKind::Usage, str("master-port is 0, and ", num_nodes, " hosts must know the port before they meet"),
         str("give every host the same --master-port, such as ", kDefaultPort));
  }
  if (by_outer) {
    plan.notes.push_back(str("host ", plan.node, " of ", num_nodes, " by ", outer.launcher, ": the hosts meet at ",
                             plan.master_addr, ':', plan.master_port));
  }
  if (hosts.local_addr) plan.notes.emplace_back("local-addr was not needed: the hosts meet at rank 0's address");
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
    fail(ErrorKind::Usage, str("node-rank is ", *hosts.node_rank, ", and there is one host"), "give --nnodes, too");
  }
  if (options.accelerate.same_network.value == false && num_nodes > 1) {
    plan.notes.push_back(str("same_network: false changes nothing: all hosts meet at ", plan.master_addr));
  }
  if (!hosts.rdzv_conf.empty()) plan.notes.emplace_back("rdzv-conf was not needed: there is nothing to wait for");
  return plan;
}

}  // namespace tandem

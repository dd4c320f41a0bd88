#include <algorithm>

#include "base/text.h"
#include "launch/plan/plan.h"

namespace tandem {
namespace {

// A free port is not known before the start.
std::vector<RankStart> starts_of(const LaunchPlan& plan) {
  std::vector<RankStart> starts;
  for (int i = 0; i < num_ranks(plan); ++i) {
    starts.push_back(rank_start(plan, i, plan.master_port, 0));
    if (plan.master_port != 0) continue;
    std::erase_if(starts.back().variables, [](const auto& variable) { return variable.first == "MASTER_PORT"; });
  }
  return starts;
}

const std::string& device_of(const LaunchPlan& plan, std::size_t local_rank) {
  return plan.devices.at(static_cast<std::size_t>(plan.env.world.local_rank) + local_rank);
}

bool is_shared(const Variables::value_type& variable, const std::vector<RankStart>& starts) {
  return starts.size() > 1 && std::ranges::all_of(starts, [&](const RankStart& start) {
           return std::ranges::count(start.variables, variable) > 0;
         });
}

std::string assignment(const Variables::value_type& variable) {
  return str(variable.first, '=', shell_quoted(variable.second));
}

}  // namespace

std::string plan_text(const LaunchPlan& plan) {
  const World& world = plan.env.world;
  const std::vector<RankStart> starts = starts_of(plan);
  const std::string port = plan.master_port == 0 ? "any free port" : str("port ", plan.master_port);
  std::string text;
  for (const std::string& note : plan.notes) text += str("note: ", note, '\n');
  text += str("run ", plan.name, ": ", starts.size(), " of ", world.size, world.size == 1 ? " rank" : " ranks",
              " here, host ", world.node, " of ", world.num_nodes, ", ", plan.env.master_addr, ", ", port, '\n');
  if (starts.size() > 1) {
    text += "every rank:\n";
    for (const auto& variable : starts.front().variables) {
      if (is_shared(variable, starts)) text += str("  ", assignment(variable), '\n');
    }
  }
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto local_rank = static_cast<int>(i);
    text +=
        str("rank ", world.rank + local_rank, " on ", device_of(plan, i), ": ", command_line(starts[i].command), '\n');
    for (const auto& variable : starts[i].variables) {
      if (!is_shared(variable, starts)) text += str("  ", assignment(variable), '\n');
    }
  }
  return text;
}

Json plan_json(const LaunchPlan& plan) {
  Json::Array ranks;
  const std::vector<RankStart> starts = starts_of(plan);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto local_rank = static_cast<int>(i);
    Json::Object variables;
    for (const auto& [name, value] : starts[i].variables) variables.emplace_back(name, value);
    ranks.push_back(Json::Object{{"rank", plan.env.world.rank + local_rank},
                                 {"local_rank", plan.env.world.local_rank + local_rank},
                                 {"device", device_of(plan, i)},
                                 {"command", Json::Array(starts[i].command.begin(), starts[i].command.end())},
                                 {"variables", std::move(variables)}});
  }
  return Json::Object{{"name", plan.name},
                      {"notes", Json::Array(plan.notes.begin(), plan.notes.end())},
                      {"world_size", plan.env.world.size},
                      {"node", plan.env.world.node},
                      {"num_nodes", plan.env.world.num_nodes},
                      {"master_addr", plan.env.master_addr},
                      {"master_port", plan.master_port},
                      {"joins", plan.joins},
                      {"ranks", std::move(ranks)}};
}

}  // namespace tandem

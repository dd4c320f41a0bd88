#pragma once

#include <tandem/detail/value.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

// How many ranks to start on this host.
struct RankCount {
  enum class Kind {
    Unset,  // one per visible GPU, or 1 without GPUs
    Number,
    Auto,  // one per visible GPU, or one per usable core without GPUs
    Gpu,   // one per visible GPU
    Cpu,   // one per usable core
  };

  Kind kind = Kind::Unset;
  std::int64_t number = 0;  // of Kind::Number

  bool given() const { return kind != Kind::Unset; }
  friend bool operator==(const RankCount&, const RankCount&) = default;
};

template <>
struct ScalarFormat<RankCount> {
  static constexpr ValueShape kShape = ValueShape::Plain;
  static std::optional<RankCount> read(std::string_view text);
  static std::string write(const RankCount& value);
  static std::string allowed() { return "a number, auto, gpu, cpu or unset"; }
};

// How many hosts there are: "2", or torchrun's "MIN:MAX".
struct NodeCount {
  int min = 1;
  int max = 1;

  friend bool operator==(const NodeCount&, const NodeCount&) = default;
};

template <>
struct ScalarFormat<NodeCount> {
  static constexpr ValueShape kShape = ValueShape::Plain;
  static std::optional<NodeCount> read(std::string_view text);
  static std::string write(const NodeCount& value);
  static std::string allowed() { return "a number of hosts"; }
};

// Streams by local rank, in torchrun's syntax: "3", "0:1,12:2". 1 is stdout, 2 is stderr, 3 is both.
struct StreamMap {
  int all = 0;                 // of ranks that are not listed
  std::map<int, int> of_rank;  // by local rank
  bool every = false;          // the word "all": both streams of all ranks

  int of(int local_rank) const;
  bool used() const;
  friend bool operator==(const StreamMap&, const StreamMap&) = default;
};

template <>
struct ScalarFormat<StreamMap> {
  static constexpr ValueShape kShape = ValueShape::Plain;
  static std::optional<StreamMap> read(std::string_view text);
  static std::string write(const StreamMap& value);
  static std::string allowed() { return "0 none, 1 stdout, 2 stderr, 3 both, or by local rank: 0:1,1:2"; }
};

// A switch with a third value, auto: the program decides.
struct AutoSwitch {
  std::optional<bool> value;

  bool on() const { return value.value_or(false); }
  friend bool operator==(const AutoSwitch&, const AutoSwitch&) = default;
};

template <>
struct ScalarFormat<AutoSwitch> {
  static constexpr ValueShape kShape = ValueShape::Switch;
  static std::optional<AutoSwitch> read(std::string_view text);
  static std::string write(const AutoSwitch& value);
  static std::string allowed() { return "true, false or auto"; }
};

// The argument with which torch.distributed.launch passes the local rank to a script.
enum class LocalRankArgument {
  None,
  Dash,        // --local-rank=N
  Underscore,  // --local_rank=N, as before torch 2.0
};

inline std::vector<std::pair<std::string, LocalRankArgument>> enum_names(LocalRankArgument) {
  return {{"none", LocalRankArgument::None},
          {"dash", LocalRankArgument::Dash},
          {"underscore", LocalRankArgument::Underscore}};
}

enum class OnStall { Report, Stop };

inline std::vector<std::pair<std::string, OnStall>> enum_names(OnStall) {
  return {{"report", OnStall::Report}, {"stop", OnStall::Stop}};
}

// Throws an Error of kind Config.
[[noreturn]] void refuse(const std::string& message, const std::string& hint);

// The number of a signal that a process can handle, by name ("SIGTERM"); nothing for any other text.
std::optional<int> signal_number(std::string_view name);

// Parses "host", "host:port" or "[::1]:port"; nothing if the port is not a number from 0 to 65535.
struct Endpoint {
  std::string host;
  std::optional<int> port;
};
std::optional<Endpoint> parse_endpoint(std::string_view text);

}  // namespace tandem

#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tandem {

// What --resume asks for.
struct ResumeRequest {
  enum class From {
    Auto,           // the newest checkpoint of this run, if there is one
    Latest,         // the newest checkpoint of the latest run: there must be one
    Nothing,        // a new run
    Path,           // a checkpoint, or the newest in a folder
    LatestWeights,  // a new run with the weights of the latest one
    Weights,        // a new run with the weights of a checkpoint
  };

  From from = From::Auto;
  std::filesystem::path path = {};  // of Path and Weights

  bool is_new_run() const { return from == From::Nothing || from == From::Weights || from == From::LatestWeights; }
};

constexpr const char* kResumeTakes =
    "--resume takes auto (starts a new run if there is none), latest, no, a checkpoint, a folder of checkpoints, a "
    "run, "
    "a folder of runs, or weights:PATH";

ResumeRequest parse_resume(std::string_view text);
std::string resume_text(const ResumeRequest& request);  // what parse_resume reads

}  // namespace tandem

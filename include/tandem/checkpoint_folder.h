#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

enum class Better { Lower, Higher };

// Which checkpoints of a folder stay when another one is saved.
struct Retention {
  int keep_last = 3;              // 0: all
  bool keep_best = true;          // the one with the best metric stays, besides the last ones
  Better better = Better::Lower;  // for a metric that is a loss
};

template <class Visitor>
void visit_fields(Retention& o, Visitor&& field) {
  field("keep-last", o.keep_last, "checkpoints to keep; 0: all");
  field("keep-best", o.keep_best, "keep the checkpoint with the best metric, too");
}

// How much of a checkpoint is looked at. Checksums take one reading of all its files.
enum class Check { Sizes, Checksums };

// Compares the files of a checkpoint with what its DONE says of them; the Error (kind Checkpoint) names the first that
// differs. A folder without a valid DONE is no checkpoint.
void verify_checkpoint(const std::filesystem::path& checkpoint, Check check = Check::Checksums);

enum class Which { Newest, Best };

struct FoundCheckpoint {
  struct PassedOver {
    std::filesystem::path path;
    std::string why;
  };

  std::optional<std::filesystem::path> path;  // nothing: there is no complete one
  std::vector<PassedOver> passed_over;        // what looks like a checkpoint and is not complete: tell the user
};

// The checkpoint of `folder` that was saved last, or the one that the file `best` names, among those that pass
// `check`. `folder` may also be one checkpoint itself. A folder that does not exist has none.
FoundCheckpoint find_checkpoint(const std::filesystem::path& folder, Which which = Which::Newest,
                                Check check = Check::Sizes);

}  // namespace tandem

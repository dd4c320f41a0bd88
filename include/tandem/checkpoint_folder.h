#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

enum class Better { Lower, Higher };

// Which checkpoints of a folder to keep.
struct Retention {
  int keep_last = 3;              // 0: all
  bool keep_best = true;          // keep the one with the best metric too
  Better better = Better::Lower;  // lower is better, as for a loss
};

template <class Visitor>
void visit_fields(Retention& o, Visitor&& field) {
  field("keep-last", o.keep_last, "number of checkpoints to keep; 0: all");
  field("keep-best", o.keep_best, "also keep the checkpoint with the best metric");
}

// What to check of a checkpoint. Checksums read all of its files.
enum class Check { Sizes, Checksums };

// Compares the files of a checkpoint with its DONE; an Error (kind Checkpoint) names the first that differs. A folder
// without a valid DONE is not a checkpoint.
void verify_checkpoint(const std::filesystem::path& checkpoint, Check check = Check::Checksums);

enum class Which { Newest, Best };

struct FoundCheckpoint {
  struct PassedOver {
    std::filesystem::path path;
    std::string why;
  };

  std::optional<std::filesystem::path> path;  // nothing: no complete checkpoint
  std::vector<PassedOver> passed_over;        // checkpoints that cannot be used, to be reported to the user
};

// The last saved checkpoint of `folder`, or the one named by the file `best`, among those that pass `check`. `folder`
// may also be a checkpoint itself. A folder that does not exist has none. One that cannot be read (permission, a
// failing disk), and so may be good, is an Error of kind Checkpoint unless it is known to be older.
FoundCheckpoint find_checkpoint(const std::filesystem::path& folder, Which which = Which::Newest,
                                Check check = Check::Sizes);

}  // namespace tandem

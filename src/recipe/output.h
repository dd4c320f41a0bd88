#pragma once

#include <filesystem>
#include <functional>

namespace tandem {

// An Error if the file cannot be written, or is the input. Call it before the work.
void check_output(const std::filesystem::path& path, const std::filesystem::path& input);

// Creates a folder atomically: `fill` writes into a temporary one, which is renamed at the end. If anything fails, no
// folder is left.
void make_new_folder(const std::filesystem::path& path, const std::function<void(const std::filesystem::path&)>& fill);

// What a command needs that writes a model folder.
struct ExportOptions {
  std::filesystem::path from = "runs/latest";
  std::filesystem::path output = {};
};

template <class Visitor>
void visit_fields(ExportOptions& o, Visitor&& field) {
  field("from", o.from, "the model: a run folder, one of its checkpoints, or a model folder");
  field("output", o.output, "folder to create");
}
void validate(const ExportOptions& options);

}  // namespace tandem

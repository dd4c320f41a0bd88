#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/files.h"

namespace tandem {

// What a disk has of files and folders, beside what programs see of them: bytes and names are durable once they were
// synced; of the rest a power cut may leave anything.
struct DiskNode {
  // Names and what they mean from now on (nullptr: nothing); all of them or none survive.
  using Change = std::vector<std::pair<std::string, std::shared_ptr<DiskNode>>>;
  using Names = std::map<std::string, std::shared_ptr<DiskNode>>;

  bool is_folder = false;
  std::string bytes;
  std::string durable_bytes;
  Names names;
  Names durable_names;
  std::vector<Change> changes;  // since names were durable

  void apply(const Change& change);
};

// What a power cut leaves of that which was not synced.
enum class Unsynced { Lost, Kept, Random };

// The kernel's operations, without waiting for the disk.
class QuickFiles : public Files {
 public:
  void make_folder(const Path& path) override { kernel_files().make_folder(path); }
  void write(const Path& path, const FileContent& content) override;
  void sync_folder(const Path& /*path*/) override {}
  void rename(const Path& from, const Path& to) override { kernel_files().rename(from, to); }
  void exchange(const Path& one, const Path& other) override { kernel_files().exchange(one, other); }
  void remove(const Path& path) noexcept override { kernel_files().remove(path); }
};

// Does what is asked, up to the operation of that number; there the power goes, in the middle of it, and nothing
// happens any more. A file counts twice: its bytes are written, then synced.
class PowerCutFiles : public Files {
 public:
  struct PowerCut {};

  explicit PowerCutFiles(Path folder) : folder_(std::move(folder)) { root_->is_folder = true; }

  void cut_at(int operation) { left_ = operation; }
  bool is_cut() const { return left_ < 0; }
  bool is_durable(const std::string& name) const { return root_->durable_names.contains(name); }

  // Puts into `target` what is on the disk.
  void leave_in(const Path& target, Unsynced unsynced, std::mt19937& random) const;

  void make_folder(const Path& path) override;
  void write(const Path& path, const FileContent& content) override;
  void sync_folder(const Path& path) override;
  void rename(const Path& from, const Path& to) override;
  void exchange(const Path& one, const Path& other) override;
  void remove(const Path& path) noexcept override;

 private:
  void count();
  std::shared_ptr<DiskNode> node(const Path& path) const;

  QuickFiles files_;
  Path folder_;
  std::shared_ptr<DiskNode> root_ = std::make_shared<DiskNode>();  // shared as names of folders are
  int left_ = 1'000'000;
};

// Does what is asked, but the operation of that number fails.
class FailingFiles : public QuickFiles {
 public:
  explicit FailingFiles(int operation) : left_(operation) {}

  bool has_failed() const { return left_ < 0; }

  void make_folder(const Path& path) override;
  void write(const Path& path, const FileContent& content) override;
  void sync_folder(const Path& path) override;
  void rename(const Path& from, const Path& to) override;
  void exchange(const Path& one, const Path& other) override;

 private:
  void count();

  int left_;
};

}  // namespace tandem

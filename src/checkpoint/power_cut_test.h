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

// A simulated disk: bytes and names are durable once synced; a power cut may lose or keep any of the rest.
struct DiskNode {
  // Changes of names (nullptr: removed); all of them survive or none.
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

// What a power cut leaves of unsynced data.
enum class Unsynced { Lost, Kept, Random };

// The kernel's operations, without fsync.
class QuickFiles : public Files {
 public:
  void make_folder(const Path& path) override { kernel_files().make_folder(path); }
  void write(const Path& path, const FileContent& content) override;
  void sync_folder(const Path& /*path*/) override {}
  void rename(const Path& from, const Path& to) override { kernel_files().rename(from, to); }
  void exchange(const Path& one, const Path& other) override { kernel_files().exchange(one, other); }
  void remove(const Path& path) noexcept override { kernel_files().remove(path); }
};

// Simulates a power cut in the middle of the operation of that number; later operations have no effect. Writing a file
// is two operations: write and sync.
class PowerCutFiles : public Files {
 public:
  struct PowerCut {};

  explicit PowerCutFiles(Path folder) : folder_(std::move(folder)) { root_->is_folder = true; }

  void cut_at(int operation) { left_ = operation; }
  bool is_cut() const { return left_ < 0; }
  bool is_durable(const std::string& name) const { return root_->durable_names.contains(name); }

  // Copies the contents of the disk to `target`.
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

// The operation of that number fails.
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

#include "checkpoint/power_cut_test.h"

#include <tandem/error.h>

#include <fstream>

#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string whole(const FileContent& content) {
  std::string bytes = content.text;
  for (const std::string_view part : content.bytes) bytes += part;
  return bytes;
}

bool survives(Unsynced unsynced, std::mt19937& random) {
  return unsynced == Unsynced::Kept || (unsynced == Unsynced::Random && random() % 2 == 0);
}

void leave(const DiskNode& node, const fs::path& target, Unsynced unsynced, std::mt19937& random) {
  if (!node.is_folder) {
    std::string bytes = survives(unsynced, random) ? node.bytes : node.durable_bytes;
    if (unsynced == Unsynced::Random && node.durable_bytes != node.bytes) bytes.resize(random() % (bytes.size() + 1));
    std::ofstream(target, std::ios::binary) << bytes;
    return;
  }
  fs::create_directories(target);
  DiskNode left;
  left.names = node.durable_names;
  for (const DiskNode::Change& change : node.changes) {
    if (survives(unsynced, random)) left.apply(change);
  }
  for (const auto& [name, child] : left.names) leave(*child, target / name, unsynced, random);
}

}  // namespace

void DiskNode::apply(const Change& change) {
  for (const auto& [name, child] : change) {
    names.erase(name);
    if (child != nullptr) names.emplace(name, child);
  }
  changes.push_back(change);
}

void QuickFiles::write(const Path& path, const FileContent& content) {
  std::ofstream(path, std::ios::binary) << whole(content);
}

void PowerCutFiles::leave_in(const Path& target, Unsynced unsynced, std::mt19937& random) const {
  leave(*root_, target, unsynced, random);
}

void PowerCutFiles::count() {
  if (--left_ < 0) throw PowerCut();
}

std::shared_ptr<DiskNode> PowerCutFiles::node(const Path& path) const {
  if (path == folder_) return root_;
  return node(path.parent_path())->names.at(path.filename());
}

void PowerCutFiles::make_folder(const Path& path) {
  count();
  files_.make_folder(path);
  auto made = std::make_shared<DiskNode>();
  made->is_folder = true;
  node(path.parent_path())->apply({{path.filename(), made}});
}

void PowerCutFiles::write(const Path& path, const FileContent& content) {
  auto made = std::make_shared<DiskNode>();
  made->bytes = whole(content);
  if (left_ == 0) made->bytes.resize(made->bytes.size() / 2);
  if (left_ >= 0) node(path.parent_path())->apply({{path.filename(), made}});
  count();
  files_.write(path, content);
  count();
  made->durable_bytes = made->bytes;
}

void PowerCutFiles::sync_folder(const Path& path) {
  count();
  const auto folder = node(path);
  folder->durable_names = folder->names;
  folder->changes.clear();
}

void PowerCutFiles::rename(const Path& from, const Path& to) {
  count();
  files_.rename(from, to);
  node(from.parent_path())->apply({{from.filename(), nullptr}, {to.filename(), node(from)}});
}

void PowerCutFiles::exchange(const Path& one, const Path& other) {
  count();
  files_.exchange(one, other);
  node(one.parent_path())->apply({{one.filename(), node(other)}, {other.filename(), node(one)}});
}

void PowerCutFiles::remove(const Path& path) noexcept {
  if (left_ < 0) return;
  --left_;
  const auto removed = node(path);
  std::size_t left = is_cut() ? removed->names.size() / 2 : 0;
  while (removed->names.size() > left) removed->apply({{removed->names.begin()->first, nullptr}});
  if (is_cut()) return;
  files_.remove(path);
  node(path.parent_path())->apply({{path.filename(), nullptr}});
}

void FailingFiles::count() {
  if (--left_ == -1) fail(ErrorKind::Checkpoint, "cannot do it: told to fail", "try again");
}

void FailingFiles::make_folder(const Path& path) {
  count();
  QuickFiles::make_folder(path);
}

// Fails after half of the text is written, or after all of it.
void FailingFiles::write(const Path& path, const FileContent& content) {
  QuickFiles::write(path, {.text = content.text.substr(0, content.text.size() / 2)});
  count();
  QuickFiles::write(path, content);
  count();
}

void FailingFiles::sync_folder(const Path& path) {
  count();
  QuickFiles::sync_folder(path);
}

void FailingFiles::rename(const Path& from, const Path& to) {
  count();
  QuickFiles::rename(from, to);
}

void FailingFiles::exchange(const Path& one, const Path& other) {
  count();
  QuickFiles::exchange(one, other);
}

}  // namespace tandem

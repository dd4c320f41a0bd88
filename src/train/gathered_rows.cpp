#include <ATen/ops/empty.h>
#include <tandem/communicator.h>
#include <tandem/error.h>
#include <tandem/metrics.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace tandem {
namespace {

using at::Tensor;

void append_number(std::string& bytes, std::int64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Reads the bytes that another rank has sent.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  bool is_at_end() const { return rest_.empty(); }
  std::string_view take(std::int64_t size) {
    if (size < 0 || std::cmp_less(rest_.size(), size)) {
      fail(ErrorKind::Comm, str("gathered rows: a row of ", size, " bytes, but ", rest_.size(), " bytes arrived"),
           "run the same program on every rank");
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::int64_t number() {
    std::int64_t value = 0;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }

 private:
  std::string_view rest_;
};

std::string_view bytes_of(const std::string& row) { return row; }

// The type, the shape, the elements.
std::string bytes_of(const Tensor& row) {
  if (!row.defined() || row.layout() != at::kStrided) {
    fail(ErrorKind::Config, "gathered rows: a row is an undefined or a sparse tensor",
         "give a row without elements as torch::empty({0}), a sparse one as tensor.to_dense()");
  }
  const Tensor plain = row.detach().cpu().contiguous();
  std::string bytes;
  append_number(bytes, static_cast<std::int64_t>(plain.scalar_type()));
  append_number(bytes, plain.dim());
  for (const std::int64_t size : plain.sizes()) append_number(bytes, size);
  bytes.append(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes());
  return bytes;
}

void read_row(std::string_view bytes, std::string& row) { row = bytes; }

void read_row(std::string_view bytes, Tensor& row) {
  ByteReader reader(bytes);
  const auto type = static_cast<at::ScalarType>(reader.number());
  std::vector<std::int64_t> sizes;
  for (std::int64_t dim = reader.number(); dim > 0; --dim) sizes.push_back(reader.number());
  row = at::empty(sizes, at::TensorOptions(type));
  const std::string_view elements = reader.take(static_cast<std::int64_t>(row.nbytes()));
  std::copy(elements.begin(), elements.end(), static_cast<char*>(row.mutable_data_ptr()));
}

}  // namespace

template <IsRow Row>
GatheredRows<Row>::GatheredRows(std::int64_t num_rows) : num_rows_(num_rows) {
  if (num_rows < 0) fail(ErrorKind::Config, str("gathered rows: ", num_rows, " rows"), "give at least 0");
}

template <IsRow Row>
void GatheredRows<Row>::add(std::span<const std::int64_t> ids, std::span<const Row> rows) {
  if (ids.size() != rows.size()) {
    fail(ErrorKind::Config, str("gathered rows: ", rows.size(), " rows for ", ids.size(), " ids"),
         "give one row for each id");
  }
  for (std::size_t i = 0; i < ids.size(); ++i) add_row(ids[i], rows[i]);
}

template <IsRow Row>
void GatheredRows<Row>::add(const SampleBatch& batch, std::span<const Row> rows) {
  if (std::cmp_less(rows.size(), batch.num_counted)) {
    fail(ErrorKind::Config, str("gathered rows: ", rows.size(), " rows for a batch of ", batch.num_counted, " samples"),
         "give one row for each sample of the batch");
  }
  add(std::span(batch.ids).first(batch.num_counted), rows.first(batch.num_counted));
}

template <IsRow Row>
void GatheredRows<Row>::add_row(std::int64_t id, const Row& row) {
  const auto& bytes = bytes_of(row);
  append_number(added_, id);
  append_number(added_, std::ssize(bytes));
  added_ += bytes;
}

template <IsRow Row>
void GatheredRows<Row>::restore(std::int64_t id, Row row) {
  learn(id, std::move(row));
}

template <IsRow Row>
void GatheredRows<Row>::learn(std::int64_t id, Row row) {
  if (id < 0 || id >= num_rows_) {
    fail(ErrorKind::Data, str("gathered rows: id ", id, ", but there are ", num_rows_, " rows"),
         "ids are 0 .. num_rows-1");
  }
  if (!known_.emplace(id, std::move(row)).second) {
    fail(ErrorKind::Data, str("gathered rows: the row of sample ", id, " was added twice"),
         "add each sample on one rank, once; of a batch, only the first num_counted");
  }
}

template <IsRow Row>
std::vector<RowOfSample<Row>> GatheredRows<Row>::exchange(Communicator& comm) {
  std::vector<RowOfSample<Row>> arrived;
  for (const std::string& theirs : comm.all_gather_bytes(std::exchange(added_, {}))) {
    ByteReader reader(theirs);
    while (!reader.is_at_end()) {
      RowOfSample<Row>& row = arrived.emplace_back(RowOfSample<Row>{.id = reader.number(), .row = {}});
      read_row(reader.take(reader.number()), row.row);
    }
  }
  std::ranges::stable_sort(arrived, {}, &RowOfSample<Row>::id);
  for (const RowOfSample<Row>& row : arrived) learn(row.id, row.row);
  return arrived;
}

template <IsRow Row>
std::vector<Row> GatheredRows<Row>::gather(Communicator& comm) {
  exchange(comm);
  std::vector<Row> rows;
  for (const auto& [id, row] : known_) {
    if (id != std::ssize(rows)) break;
    rows.push_back(row);
  }
  if (std::ssize(rows) < num_rows_) {
    fail(ErrorKind::Data,
         str("gathered rows: ", num_rows_ - num_known(), " of ", num_rows_,
             " rows are missing, the first is that of sample ", rows.size()),
         "add a row for every sample of the set, on the rank that computes it");
  }
  return rows;
}

template class GatheredRows<std::string>;
template class GatheredRows<Tensor>;

}  // namespace tandem

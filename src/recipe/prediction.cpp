#include "recipe/prediction.h"

#include <algorithm>
#include <numeric>

#include "base/json.h"
#include "base/text.h"
#include "monitor/numbers.h"

namespace tandem {
namespace {

// The rows of the first rank's draft, on every rank.
std::vector<DraftRow> share(Communicator& comm, const std::optional<Draft>& draft,
                            const std::function<bool(const std::string&)>& is_there) {
  Json::Array mine;
  if (draft) {
    for (const auto& [index, text] : draft->rows()) {
      if (!is_there || is_there(text)) mine.emplace_back(Json::Array{index, text});
    }
  }
  const Json all = parse_json(comm.all_gather_bytes(json_text(mine)).front(), "rank 0");
  std::vector<DraftRow> rows;
  for (const Json& row : all.as_array())
    rows.push_back({row.as_array()[0].as_integer(), row.as_array()[1].as_string()});
  return rows;
}

}  // namespace

Prediction::Prediction(Communicator& comm, const PredictionOptions& options)
    : comm_(comm), loop_(options.loop), progress_(options.progress, comm.world()), known_(options.num_rows) {
  if (options.output.empty()) return;
  if (comm.world().is_main()) draft_.emplace(options.output, options.key(), options.num_rows);
  for (const auto& [index, text] : share(comm, draft_, options.is_there)) known_.restore(index, text);
  if (known_.num_known() > 0) {
    progress_.log(str("continuing: ", known_.num_known(), " of ", counted(known_.num_rows(), options.row_name),
                      " are already written"));
  }
}

Sampler Prediction::sampler(std::int64_t batch_size, std::vector<std::int64_t> order) const {
  if (order.empty()) {
    order.resize(known_.num_rows());
    std::iota(order.begin(), order.end(), 0);
  }
  std::vector<std::int64_t> wanted;
  for (auto begin = order.begin(); begin != order.end();) {
    const auto end = begin + std::min(batch_size, order.end() - begin);
    const bool is_done = std::all_of(begin, end, [&](std::int64_t row) { return known_.is_known(row); });
    if (!is_done) wanted.insert(wanted.end(), begin, end);
    begin = end;
  }
  const std::int64_t num_wanted = std::ssize(wanted);
  return evaluation_sampler(num_wanted, batch_size, comm_.world(), std::move(wanted));
}

EvaluationOptions Prediction::rounds() {
  EvaluationOptions rounds = loop_;
  rounds.after_round = [this] { end_round(); };
  return rounds;
}

void Prediction::add(const SampleBatch& batch, std::span<const std::string> rows) {
  for (std::int64_t i = 0; i < batch.num_counted; ++i) {
    if (!known_.is_known(batch.ids[i])) known_.add(std::span(batch.ids).subspan(i, 1), rows.subspan(i, 1));
  }
}

void Prediction::end_round() {
  std::vector<DraftRow> rows;
  for (auto& [id, text] : known_.exchange(comm_)) rows.push_back({id, std::move(text)});
  if (draft_) draft_->keep(rows);
  progress_.show(known_.num_known(), known_.num_rows());
}

const std::vector<std::string>& Prediction::rows() {
  progress_.finish();
  if (rows_.empty()) rows_ = known_.gather(comm_);
  return rows_;
}

void Prediction::write(const std::function<void(std::span<const std::string> rows)>& write) {
  const std::vector<std::string>& all = rows();
  if (!comm_.world().is_main()) return;
  write(all);
  if (draft_) draft_->remove();
}

}  // namespace tandem

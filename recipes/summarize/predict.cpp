#include <tandem/error.h>
#include <tandem/run_worker.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "base/crc32c.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "monitor/append_file.h"
#include "recipes/summarize/commands.h"
#include "recipes/summarize/content_key.h"
#include "recipes/summarize/summaries.h"
#include "recipes/summarize/token_file.h"
#include "text/csv.h"
#include "text/vocabulary_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct Options : TrainedOptions {
  fs::path test = {};
  ColumnOptions columns = {};
  fs::path output = "submission.csv";
  GenerateOptions generate = {};
  ProgressOptions progress = {};
  bool json = false;
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("", static_cast<TrainedOptions&>(o), "the model");
  field("test", o.test, "CSV of ids and dialogues; none: what the run was evaluated on");
  field("", o.columns, "data");
  field("output", o.output, "CSV to write, in the order of --test");
  field("", o.generate, "how summaries are written");
  field("seed", o.generate.seed, "decides what is drawn, with a temperature");
  field("", o.progress, "what is shown");
  field("json", o.json, "the result as one JSON object");
}

// All that decides what is written.
std::string key_of(const Options& o, const Summarizer& model, std::span<const SummarySample> rows) {
  GenerateOptions generate = o.generate;
  std::string all = str(config_yaml(fields_of(generate)), generate.seed, '\0', precision_name(o.precision), '\0',
                        tokenizer_json_text(model.encoder.tokenizer().vocabulary()), '\0',
                        model.encoder.prompt().prefix, '\0', model.encoder.prompt().marker);
  for (const torch::Tensor& weight : model.net->parameters()) {
    const torch::Tensor bytes = weight.detach().cpu().contiguous();
    all += str('\0', crc32c({static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()}));
  }
  for (const SummarySample& row : rows) all += str('\0', row.id, '\0', row.dialogue);
  return content_key(all);
}

std::int64_t count(const Summaries& summaries) {
  return std::ranges::count_if(summaries, [](const auto& summary) { return summary.has_value(); });
}

// What has been written so far lies beside the output until that is whole, one summary a line, so that a command which
// was stopped goes on where it was. The first rank has one.
class Draft {
 public:
  Draft(const fs::path& output, const std::string& key, std::size_t num_rows)
      : path_(str(output, ".part")), key_(str(json_text(key), '\n')), summaries_(num_rows) {
    const auto text = read_if_there(path_);
    if (text && !is_draft(*text)) {
      fail(ErrorKind::Data, str(path_, " is there, and is no draft of summaries"),
           "move it away, or name another --output");
    }
    const bool is_ours = text && read(*text);
    if (text && !is_ours) fs::remove(path_);
    file_.emplace(path_, "check the folder, its permissions and the free space");
    file_->drop_torn_line();
    if (!is_ours) file_->append(key_);
  }

  const Summaries& summaries() const { return summaries_; }

  // A file without a summary would only be in the way.
  ~Draft() {
    std::error_code gone;
    if (count(summaries_) == 0 && !has_kept_) fs::remove(path_, gone);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void keep(const Summaries& summaries, std::span<const std::int64_t> rows) {
    std::string lines;
    for (const std::int64_t row : rows) lines += str(json_text(Json::Array{row, *summaries[row]}), '\n');
    file_->append(lines);
    has_kept_ = true;
  }

  void remove() const { fs::remove(path_); }

 private:
  // Of whatever command: it begins with a key, or with what was written of one.
  static bool is_draft(std::string_view text) {
    return text.substr(0, text.find('\n')).find_first_not_of("\"0123456789-") == std::string_view::npos;
  }

  // Whether it is a draft of this very command, and whole.
  bool read(std::string_view text) {
    if (!text.starts_with(key_)) return false;
    text.remove_prefix(key_.size());
    try {
      for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
        const Json line = parse_json(text.substr(0, end), path_.native());
        summaries_.at(line.as_array().at(0).as_integer()) = line.as_array().at(1).as_string();
      }
      return true;
    } catch (const Error&) {
    } catch (const std::out_of_range&) {
    }
    summaries_.assign(summaries_.size(), std::nullopt);
    return false;
  }

  fs::path path_;
  std::string key_;
  Summaries summaries_;
  bool has_kept_ = false;
  std::optional<AppendFile> file_;
};

// What the first rank knows already, on every rank.
Summaries share(Communicator& comm, const std::optional<Draft>& draft, std::size_t num_rows) {
  Json::Array known;
  if (draft) {
    for (const auto& summary : draft->summaries()) known.push_back(summary ? Json(*summary) : Json());
  }
  const Json all = parse_json(comm.all_gather_bytes(json_text(known)).front(), "rank 0");
  Summaries summaries(num_rows);
  for (std::size_t row = 0; row < num_rows; ++row) {
    if (const Json& text = all.as_array()[row]; !text.is_null()) summaries[row] = text.as_string();
  }
  return summaries;
}

void write_submission(const Options& o, std::span<const SummarySample> rows, const Summaries& summaries) {
  std::vector<std::vector<std::string>> fields;
  for (std::size_t row = 0; row < rows.size(); ++row) fields.push_back({rows[row].id, *summaries[row]});
  const std::vector<std::string> columns = {o.columns.id, o.columns.summary};
  write_csv(o.output, columns, fields);
}

std::string run(Communicator& comm, const Options& o) {
  check_output(o.output, o.test);
  const std::vector<SummarySample> rows =
      read_rows(o.test.empty() ? validation_file(o.from) : o.test, o.columns, Needs::Id);
  Summarizer model = load_trained(o, comm);
  const bool is_main = comm.world().is_main();
  std::optional<Draft> draft;
  if (is_main) draft.emplace(o.output, key_of(o, model, rows), rows.size());
  Summaries summaries = share(comm, draft, rows.size());
  std::unique_ptr<Progress> progress = make_progress(o.progress, comm.world());
  if (const std::int64_t known = count(summaries); is_main && known > 0) {
    progress->log(str("going on: ", known, " of ", rows.size(), " summaries are written already"));
  }
  write_summaries(comm, model, rows, o.generate, summaries, [&](std::span<const std::int64_t> done) {
    if (!is_main) return;
    draft->keep(summaries, done);
    show_written(*progress, count(summaries), std::ssize(rows));
  });
  if (!is_main) return "";
  progress.reset();
  write_submission(o, rows, summaries);
  draft->remove();
  const EncodingReport report{.num_cut = model.encoder.num_cut(), .num_replaced = model.encoder.num_replaced()};
  if (!o.json) return str("wrote ", rows.size(), " summaries to ", o.output, report.notes(), '\n');
  const Json::Object json = {{"samples", std::ssize(rows)}, {"output", fs::absolute(o.output).native()}};
  return str(json_text(json), '\n');
}

}  // namespace

int run_predict(const std::vector<std::string>& words) {
  Options options;
  return run_worker(
      CommandWords{words, 2},
      {"tandem summarize predict",
       "",
       "Writes the summary of each dialogue of a CSV. Stopped and started again, it goes on where it was.",
       {"tandem summarize predict --from runs/latest --test test.csv",
        "tandem summarize predict --from runs/latest --test test.csv --beams 4 --no-repeat-ngram 3"}},
      options, [&](Communicator& comm) { return run(comm, options); });
}

}  // namespace tandem

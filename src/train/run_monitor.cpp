#include "train/run_monitor.h"

#include "monitor/run_text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "monitor/event_json.h"
#include "monitor/numbers.h"
#include "train/compare_samples.h"
#include "train/rank_facts.h"
#include "train/run_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kCompareEvery = 100;  // steps

double seconds_of(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

// The value of each rank.
template <class Value>
std::vector<Value> gather(Communicator& comm, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::vector<Value> values;
  for (const std::string& bytes : comm.all_gather_bytes({reinterpret_cast<const char*>(&value), sizeof(value)})) {
    std::memcpy(&values.emplace_back(), bytes.data(), sizeof(value));
  }
  return values;
}

std::string text_of(const EventValue& value) {
  const auto text = [](const auto& v) {
    if constexpr (std::is_same_v<std::decay_t<decltype(v)>, double>) {
      return fit(v, 6, 4);
    } else {
      return str(v);
    }
  };
  return std::visit(text, value);
}

// "loss 3.2101, rouge1 0.4123"
std::string text_of(const EventFields& values) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : values) texts.push_back(str(name, ' ', text_of(value)));
  return join(texts, ", ");
}

void add_to(TensorBoard& board, const std::string& tag, const EventValue& value, std::int64_t step) {
  if (const auto* text = std::get_if<std::string>(&value)) return board.text(tag, *text, step);
  const auto number = [](const auto& v) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(v)>>) {
      return static_cast<double>(v);
    } else {
      return std::numeric_limits<double>::quiet_NaN();
    }
  };
  board.scalar(tag, std::visit(number, value), step);
}

std::vector<std::string> texts_of(const std::vector<Baseline>& baselines) {
  std::vector<std::string> texts;
  for (const auto& [name, values] : baselines) texts.push_back(str(name, ": ", text_of(values)));
  return texts;
}

// A value replaces a field of the same name.
EventFields merge(EventFields fields, const EventFields& values) {
  for (const auto& value : values) {
    std::erase_if(fields, [&](const auto& field) { return field.first == value.first; });
    fields.push_back(value);
  }
  return fields;
}

// These names are reserved: every event has them.
void check_names(const EventFields& values) {
  for (const char* name : {"time", "event", "step"}) {
    if (std::ranges::count(values, name, &EventFields::value_type::first) == 0) continue;
    fail(ErrorKind::Config, str("accelerator: the name '", name, "' of a value is reserved: every event has it"),
         "use another name");
  }
}

}  // namespace

void RunMonitor::Times::add(const RankTimes& step) {
  sum.compute += step.compute;
  sum.data_wait += step.data_wait;
  sum.peers_wait += step.peers_wait;
  ++num_steps;
}

RankTimes RunMonitor::Times::mean() const {
  const auto divisor = static_cast<double>(std::max<std::int64_t>(num_steps, 1));
  return {sum.compute / divisor, sum.data_wait / divisor, sum.peers_wait / divisor};
}

RunMonitor::RunMonitor(Communicator& comm, fs::path folder, const MonitorOptions& options, Precision precision,
                       const Screen& screen)
    : comm_(comm),
      folder_(std::move(folder)),
      options_(options),
      precision_(precision),
      screen_(screen),
      last_loss_(std::numeric_limits<double>::quiet_NaN()) {
  const int fd = options.json ? screen.error : screen.output;
  if (is_main()) progress_.emplace(fd, choose_style(fd, options.progress), has_colour(fd), screen.now);
}

void RunMonitor::begin(const RunPlan& plan) {
  plan_ = plan;
  step_ = plan.first_step;
  const std::vector<std::string> devices = comm_.all_gather_bytes(device_text(comm_.device()));
  const std::optional<Peak> peak = choose_peak();
  const int num_devices = count_devices();
  if (is_main()) {
    meter_ = Meter(plan.workload.flops, peak, num_devices);
    open_files();
    say_start(devices, peak);
  }
  begin_ = last_end_ = screen_.now();
}

std::optional<Peak> RunMonitor::choose_peak() {
  if (plan_.workload.flops <= 0) return std::nullopt;
  const std::string name = device_name(comm_.device());
  auto known = tandem::choose_peak(options_.peak, name, precision_name(precision_));
  if (known || !comm_.device().is_cpu()) return known;
  return measured_peak(comm_.mean(measure_core_flops(precision_)), comm_.mean(count_cores(comm_.world().local_size)),
                       name);
}

// Each rank on a CPU has its own threads and counts as a device.
int RunMonitor::count_devices() {
  const World& world = comm_.world();
  const auto name = comm_.device().is_cpu() ? str("rank ", world.rank) : str(world.node, ' ', comm_.device().str());
  const std::vector<std::string> names = comm_.all_gather_bytes(name);
  return static_cast<int>(std::set<std::string>(names.begin(), names.end()).size());
}

void RunMonitor::open_files() {
  if (folder_.empty()) return;
  std::error_code error;  // reported when the files are opened
  fs::create_directories(folder_, error);
  events_.emplace(folder_ / kEventsFile);
  board_.emplace(folder_, plan_.first_step + 1);
}

void RunMonitor::say_start(const std::vector<std::string>& devices, const std::optional<Peak>& peak) {
  const RunStart start{.devices = devices,
                       .transport = comm_.transport_name(),
                       .why_transport = comm_.why(),
                       .batch = plan_.batch.text(),
                       .epoch = epoch_text({.num_samples = plan_.num_samples,
                                            .samples_per_step = plan_.batch.global_batch(),
                                            .steps_per_epoch = plan_.steps_per_epoch,
                                            .all_steps = plan_.all_steps,
                                            .num_steps = plan_.num_steps}),
                       .model = plan_.model.text(),
                       .precision = plan_.precision,
                       .peak = peak ? peak->text() : "",
                       .settings = plan_.settings,
                       .folder = folder_,
                       .tensorboard = board_ ? tensorboard_command(folder_) : ""};
  print(trim(start_text(start)));
  for (const std::string& note : plan_.notes) print(note);
  const std::string warning = few_steps_warning(plan_.steps_per_epoch, comm_.world().size);
  if (!warning.empty()) print(warning);
  if (!events_) return;
  events_->write({{"event", "start"},
                  {"step", step_},
                  {"num_steps", plan_.num_steps},
                  {"ranks", std::int64_t{comm_.world().size}},
                  {"devices", join(devices, "; ")},
                  {"transport", start.transport},
                  {"global_batch", plan_.batch.global_batch()},
                  {"batch", start.batch},
                  {"parameters", plan_.model.num_parameters},
                  {"precision", precision_name(precision_)},
                  {"peak", start.peak}});
}

void RunMonitor::check_samples(std::span<const std::int64_t> ids) {
  const bool is_due = !has_checked_samples_ || step_ % kCompareEvery == 0;
  if (!is_due || comm_.world().size == 1) return;
  has_checked_samples_ = true;
  if (compare_samples(ids, step_ + 1, comm_)) ++num_compared_;
}

void RunMonitor::end_step(const StepEnd& end) {
  const auto now = screen_.now();
  const double seconds = seconds_of(now - std::exchange(last_end_, now));
  const double waited = std::exchange(waited_, 0);
  const double peers = seconds_of(end.exposed - std::exchange(exposed_, end.exposed)) + std::exchange(peers_waited_, 0);
  const RankTimes times{std::max(seconds - waited - peers, 0.0), waited, peers};
  recent_.add(times);
  all_.add(times);
  ++step_;
  if (is_main()) {
    const Speed speed = meter_.add(end.result.work, seconds);
    const StepReport report = report_of(end, seconds, speed);
    show(report, speed);
    record(report, times, end.values);
  }
  if (step_ % kCompareEvery == 0) compare_times();
}

StepReport RunMonitor::report_of(const StepEnd& end, double seconds, const Speed& speed) const {
  StepReport report{.step = step_,
                    .num_steps = plan_.num_steps,
                    .epoch = end.epoch,
                    .num_epochs = plan_.num_epochs,
                    .loss = end.result.loss,
                    .terms = end.result.terms,
                    .norm = end.result.norm,
                    .lr = end.lr,
                    .seconds = seconds,
                    .per_second = speed.per_second,
                    .unit = plan_.workload.rate(),
                    .mfu = speed.mfu,
                    .num_ranks = comm_.world().size,
                    .eta = meter_.eta(plan_.num_steps - step_),
                    .was_skipped = end.result.was_skipped};
  if (!comm_.device().is_cpu()) report.gpu_memory = highest_memory(comm_.device());
  return report;
}

void RunMonitor::show(const StepReport& report, const Speed& speed) {
  last_loss_ = report.loss;
  progress_->update(step_line(report), static_cast<double>(step_) / static_cast<double>(plan_.num_steps));
  if (!speed.warning.empty()) print(speed.warning);
  if (!report.was_skipped) return;
  ++num_skipped_;
  print(str("step ", step_, " skipped: overflow"));
}

void RunMonitor::record(const StepReport& report, const RankTimes& times, const EventFields& values) {
  if (!events_) return;
  const bool has_mfu = report.mfu && *report.mfu <= 1;
  EventFields event = {{"event", "step"},
                       {"step", report.step},
                       {"epoch", report.epoch},
                       {"loss", report.loss},
                       {"norm", report.norm},
                       {"lr", report.lr},
                       {"seconds", report.seconds},
                       {"per_second", report.per_second},
                       {"data_wait", times.data_wait},
                       {"peers_wait", times.peers_wait}};
  if (has_mfu) event.emplace_back("mfu", *report.mfu);
  if (report.gpu_memory) event.emplace_back("gpu_memory", static_cast<std::int64_t>(report.gpu_memory->count));
  if (report.was_skipped) event.emplace_back("skipped", true);
  if (report.terms.size() > 1) event.insert(event.end(), report.terms.begin(), report.terms.end());
  event.insert(event.end(), values.begin(), values.end());
  events_->write(event);

  board_->scalar("train/loss", report.loss, step_);
  if (report.terms.size() > 1) {
    for (const auto& [name, mean] : report.terms) board_->scalar(str("train/", name), mean, step_);
  }
  for (const auto& [name, value] : values) add_to(*board_, str("train/", name), value, step_);
  if (!report.was_skipped) board_->scalar("train/norm", report.norm, step_);
  board_->scalar("train/lr", report.lr, step_);
  board_->scalar("speed/per_second", report.per_second, step_);
  if (has_mfu) board_->scalar("speed/mfu", *report.mfu, step_);
}

void RunMonitor::compare_times() {
  const RankTimes mean = std::exchange(recent_, {}).mean();
  if (comm_.world().size == 1) return;
  const Balance balance = balance_of(gather(comm_, mean));
  if (!is_main()) return;
  if (balance.straggler && balance.straggler != straggler_) print(balance.text);
  straggler_ = balance.straggler;
  if (!events_) return;
  events_->write({{"event", "balance"}, {"step", step_}, {"share", balance.share}, {"text", balance.text}});
}

void RunMonitor::log(const EventFields& values, const std::string& group) {
  check_names(values);
  if (!events_) return;
  events_->write(merge({{"event", "log"}, {"step", step_}}, values));
  for (const auto& [name, value] : values) add_to(*board_, group.empty() ? name : str(group, '/', name), value, step_);
}

void RunMonitor::log_image(const std::string& name, const ImageView& image) {
  if (board_) board_->image(name, image, step_);
}

void RunMonitor::show_evaluation(std::int64_t done, std::int64_t all) {
  if (progress_)
    progress_->update(str("evaluating ", done, '/', all), static_cast<double>(done) / static_cast<double>(all));
}

void RunMonitor::print(std::string_view line) {
  if (progress_) progress_->log(line);
}

void RunMonitor::end(const RunResult& result) {
  check_names(result.values);
  const std::vector<RankTimes> times = gather(comm_, all_.mean());
  const std::vector<Bytes> memory = gather(comm_, highest_memory(comm_.device()));
  if (!is_main()) return;

  // Without a result, that of a run that has ended is its last loss; one that was stopped has none yet.
  const bool has_ended = result.why_stopped.empty();
  EventFields values = result.values;
  if (values.empty() && all_.num_steps > 0) values = {{has_ended ? "loss" : "train_loss", last_loss_}};
  const double seconds = seconds_of(screen_.now() - begin_);
  progress_->finish();
  print(trim(end_text({.num_ranks = comm_.world().size,
                       .num_steps = all_.num_steps,
                       .last_step = step_,
                       .seconds = seconds,
                       .num_skipped = num_skipped_,
                       .why_stopped = result.why_stopped,
                       .result = text_of(values),
                       .baselines = texts_of(result.baselines),
                       .replicas_equal_at = result.replicas_equal_at,
                       .num_compared = num_compared_,
                       .times = times,
                       .memory = memory,
                       .folder = folder_,
                       .next = result.next})));

  const EventFields fields = merge({{"steps", step_},
                                    {"steps_since_start", all_.num_steps},
                                    {"loss", std::numeric_limits<double>::quiet_NaN()},
                                    {"train_loss", last_loss_},
                                    {"seconds", seconds},
                                    {"folder", folder_.native()},
                                    {"why_stopped", result.why_stopped}},
                                   values);
  if (events_) events_->write(merge({{"event", "end"}}, fields));
  Json::Object json = json_of(fields);
  if (!result.baselines.empty()) json.emplace_back("baselines", json_of(result.baselines));
  int lost = progress_->error();
  if (options_.json) {
    if (lost != 0) json.emplace_back("output_lost", errno_text(lost));  // on standard error
    lost = write_all(screen_.output, str(json_text(json), '\n')) ? 0 : errno;
  }
  if (lost == 0) return;
  fail(ErrorKind::Data, str("cannot write to standard output: ", errno_text(lost)),
       folder_.empty() ? "check where it is redirected to"
                       : str("free some space; the run has ended, and its results are in ", folder_));
}

}  // namespace tandem

#pragma once

namespace tandem {

// Names of the files and folders in a run folder (docs/run-folder.md).
inline constexpr const char* kCheckpointsFolder = "checkpoints";
inline constexpr const char* kLogsFolder = "logs";
inline constexpr const char* kModelFolder = "model";  // what a recipe needs to use the weights: options, tokenizer
inline constexpr const char* kEventsFile = "events.jsonl";
inline constexpr const char* kConfigFile = "config.yaml";
inline constexpr const char* kEnvironmentFile = "environment.json";
inline constexpr const char* kCommandsFile = "command.txt";

// Beside the run folders: a link to the one that began last.
inline constexpr const char* kLatestRun = "latest";

}  // namespace tandem

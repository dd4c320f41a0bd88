#pragma once

#include <tandem/config.h>
#include <tandem/detail/field.h>
#include <tandem/error.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Begins the source of a value that gave way to another setting.
constexpr std::string_view kGivesWayTo = "gives way to ";

// A value as printed: "none", the text, or the texts separated by commas.
std::string written_text(const Written& written);

// "default 8"; an empty text is "default: empty".
std::string default_text(const Field& field);

// "batch-size" for "batch_size": both spellings name the same setting.
std::string canonical_name(std::string_view name);

// The field with that canonical name or alias, or nullptr.
const Field* find_field(std::span<const Field> fields, std::string_view name);

std::vector<std::string> field_names(std::span<const Field> fields);

// The variables that set the field, the main one first: "PET_NPROC_PER_NODE", "PET_NPROC". None without a prefix.
std::vector<std::string> variable_names(const Field& field, std::string_view prefix);

// The refusal for that name, in either spelling, or nullptr.
const Refusal* find_refusal(std::span<const Refusal> refused, std::string_view name);

// Sets the field and records the source. An invalid value is an Error of that kind that starts with `where` and names
// the value and what is expected.
void set_field(Field& field, const Written& written, const std::string& source, ErrorKind kind,
               const std::string& where);

}  // namespace tandem

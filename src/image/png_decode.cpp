#include <tandem/error.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#include "base/text.h"
#include "image/decoders.h"
#include "image/png_steps.h"

namespace tandem {
namespace {

void read_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto* left = static_cast<std::string_view*>(png_get_io_ptr(png));
  if (count > left->size()) png_error(png, "the file ends too early");
  std::memcpy(to, left->data(), count);
  left->remove_prefix(count);
}

struct PngStructs {
  png_structp png = nullptr;
  png_infop info = nullptr;

  PngStructs() = default;
  ~PngStructs() { png_destroy_read_struct(&png, &info, nullptr); }
  PngStructs(const PngStructs&) = delete;
  PngStructs& operator=(const PngStructs&) = delete;
};

class PngReader {
 public:
  PngReader(std::string_view bytes, const std::string& name) : name_(name), left_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors_, give_up_png, ignore_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) throw std::bad_alloc();
    run([&] {
      png_set_read_fn(png_, &left_, read_bytes);
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // nor texts, colour profiles, ...
      png_set_user_limits(png_, 0x7FFFFFFF, 0x7FFFFFFF);                       // ours come after the header
      png_read_info(png_, info_);
    });
  }

  std::int64_t height() const { return png_get_image_height(png_, info_); }
  std::int64_t width() const { return png_get_image_width(png_, info_); }
  int channels() const { return png_get_channels(png_, info_); }
  int depth() const { return png_get_bit_depth(png_, info_); }
  bool has_palette() const { return png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE; }
  bool is_grey() const { return (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) == 0; }

  Image decode_indices() {
    run([&] {
      png_set_packing(png_);  // one value a byte, as stored
      png_set_strip_alpha(png_);
    });
    return read(1);
  }

  Image decode_pixels(int num_channels) {
    run([&] {
      png_set_strip_16(png_);
      if (has_palette()) png_set_palette_to_rgb(png_);
      if (is_grey()) png_set_expand_gray_1_2_4_to_8(png_);
      if (is_grey() && num_channels == 3) png_set_gray_to_rgb(png_);
      png_set_strip_alpha(png_);
    });
    return read(num_channels);
  }

 private:
  Image read(int num_channels) {
    run([&] {
      png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    Image image(static_cast<int>(height()), static_cast<int>(width()), num_channels);
    if (png_get_rowbytes(png_, info_) != image.row_size()) {
      fail(ErrorKind::Internal, str("a row of the PNG ", name_, " has ", png_get_rowbytes(png_, info_), " bytes"),
           "please report this");
    }
    std::vector<png_bytep> rows;
    for (int y = 0; y < image.height; ++y) rows.push_back(image.row(y).data());
    run([&] {
      png_read_image(png_, rows.data());
      png_read_end(png_, nullptr);
    });
    return image;
  }

  template <class Step>
  void run(const Step& step) {
    if (run_step(errors_, step)) return;
    fail(ErrorKind::Data, str(name_, " is a PNG that cannot be decoded: ", errors_.message.data()),
         "the file is truncated or damaged: copy it again, or take it out of the data");
  }

  const std::string& name_;
  std::string_view left_;
  PngErrors errors_;
  PngStructs structs_;
  png_structp& png_ = structs_.png;
  png_infop& info_ = structs_.info;
};

void check_indices(const PngReader& reader, const std::string& name) {
  if (reader.depth() == 16) {
    fail(ErrorKind::Data, str(name, " has 16 bits a pixel where class numbers are needed"),
         "save masks with 8 bits a pixel: a class number is at most 255");
  }
  if (!reader.is_grey() && !reader.has_palette()) {
    fail(ErrorKind::Data, str(name, " is a PNG of colours where class numbers are needed"),
         "save masks as grey or palette PNG whose values are the numbers of the classes");
  }
}

}  // namespace

void give_up_png(png_structp png, png_const_charp message) {
  auto* errors = static_cast<PngErrors*>(png_get_error_ptr(png));
  std::snprintf(errors->message.data(), errors->message.size(), "%s", message);
  std::longjmp(errors->jump, 1);  // NOLINT: what lies between has no destructors
}

void ignore_warning(png_structp, png_const_charp) {}

Image decode_png(std::string_view bytes, const std::string& name, const DecodeOptions& options) {
  PngReader reader(bytes, name);
  check_num_pixels(reader.height(), reader.width(), options.most_pixels, name);
  if (options.kind == PixelKind::Indices) {
    check_indices(reader, name);
    return reader.decode_indices();
  }
  const bool is_grey = options.kind == PixelKind::Grey;
  const Image image = reader.decode_pixels(is_grey && reader.is_grey() ? 1 : 3);
  return is_grey && image.channels == 3 ? grey_of_rgb(image) : image;
}

ImageHeader decode_png_header(std::string_view bytes, const std::string& name) {
  const PngReader reader(bytes, name);
  check_num_pixels(reader.height(), reader.width(), kMostPixels, name);
  return {.height = static_cast<int>(reader.height()),
          .width = static_cast<int>(reader.width()),
          .channels = reader.channels()};
}

}  // namespace tandem

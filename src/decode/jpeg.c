/* Decodes one JPEG held in memory, or a window of it, with libjpeg's own interface.
 *
 * This is C because libjpeg reports fatal errors by a function that must not return, which only
 * setjmp leaves safely. The source is a suspending one that never has more data: libjpeg then says
 * itself whether the bytes ran out before the last row, as it does for Pillow, in place of making
 * up an end of image. Nothing is kept between images: tables that one file leaves behind would
 * otherwise decode the next file that lacks them.
 */

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

/* Rows asked for at once: the most that one row of 4:2:0 blocks gives. */
#define ROWS 16

/* What became of an image; `Status` in jpeg.rs. */
enum { DECODED, ENDLESS, TRUNCATED, BROKEN, STOPPED, TOO_MANY_SCANS, CANCELLED };

/* Scans of one file at most. Each may be a few bytes that cost a pass over all of the image; encoders write
 * some ten, and the rarest scripts below a hundred (libjpeg-turbo, "Two Issues with the JPEG Standard"). */
#define MOST_SCANS 500

/* What the file says of itself; `Header` in jpeg.rs. */
struct fastload_jpeg_header {
  unsigned width, height, components;
  unsigned block_width; /* of the smallest part that can be decoded alone, in pixels */
  int arithmetic;
};

/* What is decoded, in pixels of an image whose sides are divided by `scale`; `Window` in jpeg.rs. */
struct fastload_jpeg_window {
  unsigned top, left, height, width;
  unsigned scale; /* 1, 2, 4 or 8 */
};

struct errors {
  struct jpeg_error_mgr manager; /* first: libjpeg holds a pointer to it */
  jmp_buf escape;
  char *message;
};

struct progress {
  struct jpeg_progress_mgr manager; /* first: libjpeg holds a pointer to it */
  jmp_buf *escape;
  int (*is_wanted)(void);
};

struct source {
  struct jpeg_source_mgr manager; /* first: libjpeg holds a pointer to it */
  int starved;                    /* whether more data was ever asked for */
};

/* All that belongs to one image. */
struct decoder {
  struct jpeg_decompress_struct image;
  struct errors errors;
  struct source source;
  struct progress progress;
};

static void fail(j_common_ptr image) {
  struct errors *errors = (struct errors *)image->err;
  image->err->format_message(image, errors->message);
  longjmp(errors->escape, 1);
}

/* Called between the rows of blocks of each scan. */
static void look_up(j_common_ptr image) {
  struct progress *progress = (struct progress *)image->progress;
  if (((j_decompress_ptr)image)->input_scan_number > MOST_SCANS) {
    longjmp(*progress->escape, TOO_MANY_SCANS);
  }
  if (!progress->is_wanted()) longjmp(*progress->escape, CANCELLED);
}

static void ignore_message(j_common_ptr image) { (void)image; }

static void ignore_event(j_decompress_ptr image) { (void)image; }

static boolean suspend(j_decompress_ptr image) {
  ((struct source *)image->src)->starved = 1;
  return FALSE;
}

static void skip(j_decompress_ptr image, long count) {
  struct jpeg_source_mgr *source = image->src;
  size_t bytes = count > 0 ? (size_t)count : 0;
  if (bytes > source->bytes_in_buffer) bytes = source->bytes_in_buffer;
  source->next_input_byte += bytes;
  source->bytes_in_buffer -= bytes;
}

/* Makes ready to read `data`; what may fail is left to the caller's setjmp. */
static void prepare(struct decoder *decoder, const unsigned char *data, size_t length,
                    int (*is_wanted)(void), char *message) {
  memset(decoder, 0, sizeof *decoder);
  decoder->image.err = jpeg_std_error(&decoder->errors.manager);
  decoder->errors.manager.error_exit = fail;
  decoder->errors.manager.output_message = ignore_message;
  decoder->errors.message = message;
  decoder->source.manager.next_input_byte = data;
  decoder->source.manager.bytes_in_buffer = length;
  decoder->source.manager.init_source = ignore_event;
  decoder->source.manager.fill_input_buffer = suspend;
  decoder->source.manager.skip_input_data = skip;
  decoder->source.manager.resync_to_restart = jpeg_resync_to_restart;
  decoder->source.manager.term_source = ignore_event;
  decoder->progress.manager.progress_monitor = look_up;
  decoder->progress.escape = &decoder->errors.escape;
  decoder->progress.is_wanted = is_wanted;
}

/* Reads up to the first scan. Returns true if the data reach that far. */
static int read_header(struct decoder *decoder) {
  jpeg_create_decompress(&decoder->image);
  decoder->image.src = &decoder->source.manager;
  if (decoder->progress.is_wanted != NULL) decoder->image.progress = &decoder->progress.manager;
  int status;
  do {
    status = jpeg_read_header(&decoder->image, FALSE);
  } while (status == JPEG_HEADER_TABLES_ONLY);
  return status != JPEG_SUSPENDED;
}

/* Whether each coefficient of each component came in full precision. Where one did not, libjpeg
 * smooths blocks by their neighbours, further than the margin of a window reaches. */
static int is_precise(j_decompress_ptr image) {
  if (!image->progressive_mode || !image->coef_bits) return 1;
  for (int component = 0; component < image->num_components; component++) {
    for (int place = 0; place < DCTSIZE2; place++) {
      if (image->coef_bits[component][place] != 0) return 0;
    }
  }
  return 1;
}

/* Whether decoding the rest of a file of one scan would surely find the end of the image, and
 * nothing else but rows. The decoder of a scan stops at each marker but those of restarts: when the
 * first such marker is the end of the image, rows that lack their data are warned of, no more. */
static int is_sound_to_the_end(j_decompress_ptr image) {
  const unsigned char *at = image->src->next_input_byte;
  const unsigned char *end = at + image->src->bytes_in_buffer;
  if (image->unread_marker == JPEG_EOI) return 1;
  if (image->unread_marker != 0 &&
      (image->unread_marker < JPEG_RST0 || image->unread_marker > JPEG_RST0 + 7)) {
    return 0;
  }
  while (at < end && (at = memchr(at, 0xFF, (size_t)(end - at))) != NULL) {
    while (at < end && *at == 0xFF) at++;
    if (at == end) return 0;
    if (*at == JPEG_EOI) return 1;
    if (*at != 0 && (*at < JPEG_RST0 || *at > JPEG_RST0 + 7)) return 0;
  }
  return 0;
}

static int decode(struct decoder *decoder, const struct fastload_jpeg_window *window,
                  unsigned channels, unsigned char *pixels, size_t capacity) {
  const j_decompress_ptr image = &decoder->image;
  if (!read_header(decoder)) return TRUNCATED;
  image->scale_num = 1;
  image->scale_denom = window->scale;
  jpeg_calc_output_dimensions(image);
  const JDIMENSION rows = image->output_height, columns = image->output_width;
  const int in_part = window->height < rows || window->width < columns;
  const int inside = window->height <= rows && window->top <= rows - window->height &&
                     window->width <= columns && window->left <= columns - window->width;
  const size_t stride = (size_t)window->width * channels;
  if (!inside || stride == 0 || window->height > capacity / stride) return STOPPED;

  image->out_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  if (!jpeg_start_decompress(image)) return TRUNCATED;
  if ((unsigned)image->output_components != channels) return STOPPED;
  if (in_part) {
    JDIMENSION left = window->left, width = window->width;
    if (!is_precise(image)) return STOPPED;
    jpeg_crop_scanline(image, &left, &width);
    if (left != window->left || width != window->width) return STOPPED;
    /* The function knows of no suspension, but what was missing once is missing for good. */
    if (window->top > 0) (void)jpeg_skip_scanlines(image, window->top);
  }
  unsigned done = 0; /* rows written: `pixels` has room for the window's, whatever libjpeg counts */
  while (done < window->height && !decoder->source.starved) {
    JSAMPROW targets[ROWS];
    const unsigned left = window->height - done;
    const unsigned wanted = left < ROWS ? left : ROWS;
    for (unsigned row = 0; row < wanted; row++) {
      targets[row] = pixels + (done + row) * stride;
    }
    const unsigned read = jpeg_read_scanlines(image, targets, wanted);
    if (read == 0) return TRUNCATED;
    done += read;
  }
  if (decoder->source.starved) return TRUNCATED;
  if (window->top + window->height < rows) {
    /* In a file of several scans, all of them were read before the first row. */
    return jpeg_has_multiple_scans(image) || is_sound_to_the_end(image) ? DECODED : STOPPED;
  }
  /* All rows are there: a missing end of image is no loss for Pillow, a broken one is an error. */
  return jpeg_finish_decompress(image) ? DECODED : ENDLESS;
}

static int describe(struct decoder *decoder, struct fastload_jpeg_header *header) {
  const j_decompress_ptr image = &decoder->image;
  if (!read_header(decoder)) return TRUNCATED;
  int factor = 1;
  for (int component = 0; component < image->num_components; component++) {
    const int across = image->comp_info[component].h_samp_factor;
    if (across > factor) factor = across;
  }
  header->width = image->image_width;
  header->height = image->image_height;
  header->components = (unsigned)image->num_components;
  header->block_width = (unsigned)factor * DCTSIZE;
  header->arithmetic = image->arith_code;
  return DECODED;
}

/* Reads the header of `data`. `message` (JMSG_LENGTH_MAX bytes) is filled when it is BROKEN. */
int fastload_jpeg_header(const unsigned char *data, size_t length,
                         struct fastload_jpeg_header *header, char *message) {
  struct decoder decoder;
  prepare(&decoder, data, length, NULL, message);
  if (setjmp(decoder.errors.escape)) {
    jpeg_destroy_decompress(&decoder.image);
    return BROKEN;
  }
  const int status = describe(&decoder, header);
  jpeg_destroy_decompress(&decoder.image);
  return status;
}

/* Decodes a window of `data` into `pixels`, as rows of grey (1 channel), RGB (3) or CMYK (4) without
 * padding; grey files become equal red, green and blue where RGB is asked for.
 *
 * A window less than the image begins at a multiple of the header's block width, and ends at one or
 * at the image's edge. `message` is as above. ENDLESS: decoded, but no end of image follows. STOPPED:
 * the window does not fit the image or `capacity`, or only decoding all of the image tells whether the
 * file is sound. TOO_MANY_SCANS: decoding would take as long as the file likes. CANCELLED: `is_wanted`,
 * which is asked now and then, returned 0.
 */
int fastload_jpeg_decode(const unsigned char *data, size_t length,
                         const struct fastload_jpeg_window *window, unsigned channels,
                         unsigned char *pixels, size_t capacity, int (*is_wanted)(void),
                         char *message) {
  struct decoder decoder;
  prepare(&decoder, data, length, is_wanted, message);
  switch (setjmp(decoder.errors.escape)) {
    case 0:
      break;
    case TOO_MANY_SCANS:
      jpeg_destroy_decompress(&decoder.image);
      return TOO_MANY_SCANS;
    case CANCELLED:
      jpeg_destroy_decompress(&decoder.image);
      return CANCELLED;
    default:
      jpeg_destroy_decompress(&decoder.image);
      return BROKEN;
  }
  const int status = decode(&decoder, window, channels, pixels, capacity);
  jpeg_destroy_decompress(&decoder.image);
  return status;
}

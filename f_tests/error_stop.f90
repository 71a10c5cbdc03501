! Broken if this fails: without the argument `status`, an error or "try again" does not end the
! program with the name of the subroutine and the library's message; or llcl_abort and llcl_exit do
! not end the job with their code.
! kind: alone
! modes: auto
program error_stop
  use testing
  implicit none
  character(len=32) :: what
  integer(c_int64_t) :: word
  type(llcl_world_t) :: world
  type(llcl_config_t) :: config

  call get_command_argument(1, what)
  select case (what)
  case ('')
    call run('rank', 1, 'llcl_flush: ')
    call run('array', 1, 'llcl_write_small: the array''s elements do not lie one after the other')
    call run('timeout', 1, 'llcl_wait_word: ')
    call run('retry', 1, 'llcl_world_free: try again')
    call run('abort', 7, '')
    call run('exit', 5, '')
  case ('rank')
    call begin(64)
    call llcl_flush(context, 1000)
  case ('array')
    call begin(64)
    call llcl_write(context, 0, spread([1, 2, 3, 4], 1, 2), everybody(0))
    block
      integer(c_int32_t) :: a(2, 2)
      a = 0
      call llcl_write_small(context, 0, a(1, :), everybody(0))
    end block
  case ('timeout')
    call begin(64)
    word = 0
    call llcl_wait_word(context, word, 1_c_int64_t, 0_c_int64_t)
  case ('retry')
    call llcl_world_create(1, world)
    config%world = world
    call llcl_init(config, context)
    call llcl_world_free(world)
  case ('abort')
    call begin(64)
    call llcl_abort(context, 7)
  case ('exit')
    call begin(64)
    call llcl_exit(context, 5, 1000)
  end select
  if (what /= '') call check(.false., 'the program runs on')

contains

  ! Runs this program by llcl-run. Checks the exit code and the output.
  subroutine run(argument, code, said)
    character(len=*), intent(in) :: argument, said
    integer, intent(in) :: code
    character(len=512) :: program_, launcher, output, line
    integer :: got, unit, end
    logical :: found
    call get_command_argument(0, program_)
    call get_environment_variable('LLCL_RUN', launcher)
    output = trim(program_)//'.'//argument
    call execute_command_line(trim(launcher)//' --timeout 20 -n 1 '//trim(program_)//' '//argument//' > '//trim(output)//' 2>&1', &
        exitstat=got)
    found = said == ''
    open (newunit=unit, file=output, action='read')
    do
      read (unit, '(a)', iostat=end) line
      if (end /= 0) exit
      if (index(line, said) > 0 .and. said /= '') found = .true.
    end do
    close (unit, status='delete')
    call expect(got, code, argument)
    call check(found, argument//' says '//said)
  end subroutine
end program

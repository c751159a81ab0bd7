"""Well-known names of each type, written from memory: they add to the names of Re-DocRED that `entity_typing.py` fits to."""

from __future__ import annotations

SEED_NAMES = {
    "PER": """
        Mary, James, John, Robert, Patricia, Michael, Linda, William, Elizabeth, David, Barbara, Richard, Susan,
        Joseph, Jessica, Thomas, Sarah, Charles, Karen, Nancy, Lisa, Matthew, Betty, Anthony, Sandra, Ashley, Steven,
        Kimberly, Andrew, Emily, Kenneth, Donna, Joshua, Michelle, Kevin, Carol, Brian, Amanda, Melissa, Timothy,
        Deborah, Ronald, Stephanie, Jason, Rebecca, Jeffrey, Laura, Ryan, Sharon, Jacob, Cynthia, Kathleen, Nicholas,
        Amy, Eric, Angela, Jonathan, Shirley, Anna, Brenda, Pamela, Emma, Nicole, Samuel, Katherine, Benjamin,
        Christine, Gregory, Helen, Debra, Alexander, Rachel, Patrick, Carolyn, Jack, Janet, Dennis, Maria, Jerry,
        Heather, Tyler, Diane, Aaron, Olivia, Jose, Julie, Adam, Joyce, Nathan, Victoria, Henry, Ruth, Zachary,
        Virginia, Peter, Lauren, Kyle, Kelly, Walter, Christina, Harold, Joan, Jeremy, Evelyn, Ethan, Judith, Carl,
        Keith, Roger, Gerald, Christian, Terry, Sean, Arthur, Austin, Noah, Lawrence, Jesse, Joe, Bryan, Billy, Bruce,
        Gabriel, Logan, Alan, Juan, Dylan, Wayne, Ralph, Roy, Eugene, Louis, Philip, Bobby, Johnny, Hans, Jürgen,
        Klaus, Wolfgang, Uwe, Dieter, Heinz, Ingrid, Ursula, Heike, Sabine, Pierre, Jacques, Michel, Philippe,
        Nathalie, Chantal, François, Marcel, Giovanni, Marco, Luca, Paolo, Giulia, Francesca, Chiara, Carlos, Miguel,
        Javier, Pablo, Carmen, Lucía, Diego, Andrés, João, Pedro, Rui, Inês, Sven, Lars, Erik, Astrid, Björn, Freja,
        Mikkel, Søren, Jari, Aino, Kaarlo, Jan, Piotr, Agnieszka, Małgorzata, Jakub, Wojciech, Ivan, Dmitri, Sergei,
        Olga, Natalia, Vladimir, Yuri, Tatiana, Ahmed, Mohammed, Fatima, Aisha, Omar, Hassan, Yusuf, Khalid, Leila,
        Reza, Mehmet, Ayşe, Emre, Rajesh, Anil, Sunita, Deepak, Lakshmi, Arjun, Krishna, Wei, Ming, Hiroshi, Yuki,
        Kenji, Haruto, Sakura, Min-jun, Ji-woo, Nguyen, Thanh, Kwame, Chinua, Ngozi, Amara, Kofi, Thabo, Sipho, Zola,
        Abebe, Smith, Johnson, Williams, Brown, Jones, Garcia, Miller, Davis, Rodriguez, Martinez, Hernandez, Lopez,
        Gonzalez, Wilson, Anderson, Taylor, Moore, Jackson, Martin, Lee, Perez, Thompson, Harris, Sanchez, Clark,
        Ramirez, Lewis, Robinson, Walker, Young, Allen, King, Wright, Scott, Torres, Hill, Flores, Green, Adams,
        Nelson, Baker, Hall, Rivera, Campbell, Mitchell, Carter, Roberts, Phillips, Evans, Turner, Parker, Collins,
        Edwards, Stewart, Morris, Murphy, Cook, Rogers, Morgan, Peterson, Cooper, Reed, Bailey, Bell, Gomez, Kelly,
        Howard, Ward, Cox, Richardson, Wood, Watson, Brooks, Bennett, Gray, Hughes, Price, Müller, Schmidt, Schneider,
        Fischer, Weber, Meyer, Wagner, Becker, Schulz, Hoffmann, Dubois, Lefebvre, Moreau, Rousseau, Rossi, Russo,
        Ferrari, Esposito, Bianchi, Romano, Silva, Santos, Oliveira, Pereira, Jansen, de Vries, van den Berg,
        Andersson, Johansson, Hansen, Olsen, Larsen, Nielsen, Virtanen, Korhonen, Kowalski, Nowak, Ivanov, Petrov,
        Smirnov, Popescu, Ionescu, Nagy, Kovács, Novák, Horvat, Papadopoulos, Yılmaz, Kaya, Khan, Singh, Kumar, Patel,
        Sharma, Gupta, Chen, Wang, Li, Zhao, Tanaka, Suzuki, Takahashi, Sato, Kim, Park, Tran, Okafor, Mensah, Diallo,
        Ndlovu, O'Brien, MacDonald, Fitzgerald, Mozart, Beethoven, Bach, Shakespeare, Dickens, Tolstoy, Dostoevsky,
        Goethe, Kant, Nietzsche, Freud, Marx, Lenin, Stalin, Hitler, Churchill, Napoleon, Gandhi, Mandela, Lincoln,
        Roosevelt, Kennedy, Nixon, Reagan, Obama, Trump, Merkel, Putin, Einstein, Newton, Darwin, Curie, Tesla,
        Galileo, Plato, Aristotle, Socrates, Homer, Virgil, Dante, Picasso, Rembrandt, Michelangelo, Caesar,
        Cleopatra, Moses, Abraham, Jesus, Muhammad, Buddha, Zeus, Apollo, Athena, Odin, Thor, Shiva, Vishnu, Rama,
        Batman, Superman, Sherlock Holmes, Harry Potter, Frodo, Madonna, Elvis Presley, Bob Dylan, Michael Jackson,
        George Washington, Thomas Jefferson, Maria Callas, Ludwig van Beethoven, Vincent van Gogh, Leonardo da Vinci,
        Queen Victoria, Louis XIV, Henry VIII, Pope Francis, Princess Diana, Aung San Suu Kyi, Ho Chi Minh, Kim
        Il-sung, Deng Xiaoping, Lee Kuan Yew
        """,
    "LOC": """
        London, Paris, Berlin, Madrid, Rome, Vienna, Prague, Budapest, Warsaw, Brussels, Amsterdam, Copenhagen,
        Stockholm, Helsinki, Lisbon, Athens, Moscow, Kiev, Minsk, Riga, Vilnius, Tallinn, Zurich, Geneva, Basel,
        Munich, Hamburg, Cologne, Frankfurt, Stuttgart, Dresden, Leipzig, Bremen, Hanover, Nuremberg, Salzburg,
        Innsbruck, Graz, Milan, Naples, Turin, Venice, Florence, Bologna, Genoa, Palermo, Barcelona, Valencia,
        Seville, Bilbao, Granada, Porto, Lyon, Marseille, Toulouse, Nice, Bordeaux, Strasbourg, Nantes, Lille,
        Rotterdam, The Hague, Bruges, Liège, Luxembourg, Birmingham, Liverpool, Leeds, Sheffield, Bristol, Newcastle,
        Nottingham, Oxford, Cambridge, York, Bath, Brighton, Glasgow, Aberdeen, Dundee, Cardiff, Swansea, Belfast,
        Cork, Galway, Bergen, Trondheim, Gothenburg, Malmö, Uppsala, Turku, Kraków, Gdańsk, Wrocław, Poznań, Lviv,
        Odessa, Bucharest, Cluj, Sofia, Belgrade, Zagreb, Ljubljana, Sarajevo, Skopje, Tirana, Thessaloniki, Istanbul,
        Ankara, Izmir, Cairo, Alexandria, Tunis, Algiers, Casablanca, Marrakesh, Tripoli, Khartoum, Addis Ababa,
        Mombasa, Kampala, Dar es Salaam, Harare, Lusaka, Johannesburg, Cape Town, Durban, Pretoria, Accra, Abuja,
        Ibadan, Dakar, Abidjan, Jerusalem, Tel Aviv, Beirut, Damascus, Baghdad, Tehran, Isfahan, Riyadh, Mecca,
        Medina, Dubai, Doha, Kabul, Karachi, Lahore, Islamabad, Delhi, Mumbai, Bombay, Calcutta, Chennai, Bangalore,
        Hyderabad, Dhaka, Colombo, Kathmandu, Bangkok, Hanoi, Saigon, Manila, Jakarta, Surabaya, Kuala Lumpur, Yangon,
        Beijing, Shanghai, Guangzhou, Shenzhen, Nanjing, Wuhan, Chengdu, Tianjin, Taipei, Tokyo, Osaka, Kyoto, Nagoya,
        Hiroshima, Nagasaki, Sapporo, Seoul, Busan, Pyongyang, Sydney, Melbourne, Brisbane, Perth, Adelaide, Hobart,
        Darwin, Auckland, Wellington, Christchurch, Chicago, Boston, Houston, Dallas, Austin, Phoenix, Denver,
        Seattle, Portland, San Francisco, Los Angeles, San Diego, Las Vegas, Detroit, Cleveland, Cincinnati,
        Pittsburgh, Baltimore, Atlanta, Miami, Tampa, Orlando, Memphis, Nashville, New Orleans, St. Louis, Kansas
        City, Minneapolis, Milwaukee, Indianapolis, Buffalo, Sacramento, Honolulu, Manhattan, Brooklyn, Queens, Bronx,
        Harlem, Hollywood, Toronto, Montreal, Vancouver, Ottawa, Calgary, Edmonton, Winnipeg, Halifax, Mexico City,
        Guadalajara, Monterrey, Havana, Kingston, Panama, Bogotá, Medellín, Caracas, Quito, Lima, Cusco, La Paz,
        Santiago, Valparaíso, Buenos Aires, Córdoba, Rosario, Montevideo, Asunción, São Paulo, Rio de Janeiro,
        Salvador, Recife, Bavaria, Saxony, Hesse, Westphalia, Tyrol, Burgundy, Brittany, Normandy, Provence, Alsace,
        Lombardy, Tuscany, Sicily, Sardinia, Piedmont, Catalonia, Andalusia, Galicia, Castile, Aragon, Flanders,
        Holland, Yorkshire, Cornwall, Kent, Devon, Essex, Sussex, Ulster, Munster, Connacht, Transylvania, Moldavia,
        Wallachia, Bohemia, Moravia, Silesia, Pomerania, Galicia, Crimea, Siberia, Anatolia, Kurdistan, Kashmir,
        Punjab, Bengal, Gujarat, Kerala, Assam, Tibet, Manchuria, Hokkaido, Okinawa, Java, Sumatra, Borneo, Bali,
        Luzon, Mindanao, Crete, Corsica, Patagonia, Amazonia, Yucatán, Oaxaca, Long Island, Silicon Valley, Wall
        Street, Danube, Rhine, Elbe, Thames, Seine, Loire, Volga, Nile, Ganges, Indus, Mekong, Amazon, Mississippi,
        Missouri, Hudson, Alps, Andes, Himalayas, Rockies, Pyrenees, Carpathians, Everest, Kilimanjaro, Vesuvius,
        Sahara, Atlantic, Pacific, Mediterranean, Baltic, Adriatic, Heathrow, Westminster, Kremlin, Hampshire,
        Warwickshire, Somerset, Aberdeenshire, Düsseldorf, Heidelberg, Magdeburg, Oldenburg, Ingolstadt, Darmstadt,
        Nashua, Greenville, Jacksonville, Brownsville, Pottstown, Georgetown, Allentown, Farmington, Wilmington,
        Bloomington, Springfield, Mansfield, Bradford, Stafford, Plymouth, Falmouth, Portsmouth, Ashford,
        Chesterfield, Winchester, Manchester, Worcester, Leicester, Cheltenham, Rotherham, Saint Petersburg,
        Volgograd, Kaliningrad, Novgorod, Ashgabat, Samarkand, Tashkent, Hungary, England, Asia, Europe, Rajasthan,
        Zhejiang, Fujian
        """,
    "ORG": """
        Microsoft, Google, Apple, Amazon, Facebook, Oracle, Intel, Nokia, Samsung, Sony, Toshiba, Hitachi, Panasonic,
        Siemens, Bosch, BMW, Volkswagen, Toyota, Honda, Nissan, Ford, Chrysler, General Motors, Fiat, Renault,
        Peugeot, Volvo, Boeing, Airbus, Lockheed Martin, Northrop Grumman, Shell, Exxon, Chevron, Gazprom, Total,
        Walmart, Tesco, Ikea, Starbucks, McDonald's, Coca-Cola, Pepsi, Pfizer, Novartis, Bayer, Roche, Deloitte, KPMG,
        Accenture, Goldman Sachs, Morgan Stanley, JPMorgan, Citigroup, HSBC, Deutsche Bank, Credit Suisse, Visa,
        Mastercard, Verizon, Vodafone, Telefónica, Comcast, Disney, Warner Bros., Paramount, Universal Pictures,
        Columbia Pictures, Netflix, HBO, CNN, NBC, CBS, ABC, BBC, ITV, PBS, ESPN, MTV, Reuters, Associated Press,
        Bloomberg, Nintendo, Sega, Atari, Electronic Arts, Ubisoft, Square Enix, Adobe, Yahoo, eBay, Twitter,
        LinkedIn, Mozilla, Motorola, Xerox, Kodak, General Electric, Hewlett-Packard, Dell, Lenovo, Huawei, Alibaba,
        Tencent, Baidu, Lufthansa, Air France, British Airways, Qantas, Ryanair, Delta, FedEx, Royal Dutch Shell,
        Procter & Gamble, Johnson & Johnson, Marks & Spencer, Barnes & Noble, Penguin, Random House, HarperCollins,
        Elsevier, Springer, Macmillan, EMI, Polydor, Motown, Columbia Records, Sub Pop, Capitol, Virgin, Island
        Records, NASA, CIA, FBI, NSA, KGB, NATO, UNESCO, UNICEF, WHO, IMF, OECD, OPEC, ASEAN, EU, UN, European Union,
        United Nations, World Bank, African Union, European Commission, Red Cross, Interpol, Greenpeace, Amnesty
        International, Oxfam, Harvard, Yale, Stanford, Princeton, MIT, UCLA, Caltech, Columbia, Sorbonne, INSEAD,
        Republicans, Democrats, Labour, Conservatives, Liberals, Greens, Communists, Republican, Democratic, Whig,
        Tory, Likud, Hamas, Hezbollah, Taliban, Al-Qaeda, Fatah, Sinn Féin, Fianna Fáil, Nazi, Nazis, Bolsheviks, Ku
        Klux Klan, Wehrmacht, Luftwaffe, Gestapo, Royal Navy, Red Army, US Army, Royal Air Force, Marine Corps, Coast
        Guard, Congress, Senate, House of Lords, House of Commons, Bundestag, Knesset, Duma, Parliament, Supreme
        Court, White House, Pentagon, Ministry of Defence, Arsenal, Chelsea, Liverpool, Manchester United, Manchester
        City, Tottenham Hotspur, Everton, Aston Villa, Leeds United, Newcastle United, West Ham, Celtic, Rangers, Real
        Madrid, Atlético Madrid, Barcelona, Valencia, Sevilla, Juventus, AC Milan, Inter Milan, Roma, Lazio, Napoli,
        Bayern Munich, Borussia Dortmund, Schalke, Werder Bremen, Ajax, Feyenoord, PSV, Benfica, Sporting, Porto,
        Olympique Lyonnais, Monaco, Galatasaray, Fenerbahçe, Olympiacos, Dynamo Kyiv, Spartak Moscow, CSKA, Red Star
        Belgrade, Steaua București, Boca Juniors, River Plate, Flamengo, Corinthians, Palmeiras, New York Yankees,
        Boston Red Sox, Chicago Cubs, Los Angeles Lakers, Boston Celtics, Chicago Bulls, Miami Heat, Golden State
        Warriors, Dallas Cowboys, Green Bay Packers, New England Patriots, Pittsburgh Steelers, Philadelphia Eagles,
        Toronto Maple Leafs, Montreal Canadiens, New York Rangers, Detroit Red Wings, Patriots, Steelers, Dodgers,
        Giants, Jets, Mets, Knicks, Warriors, NBA, NFL, NHL, MLB, FIFA, UEFA, IOC, FIA, National Basketball
        Association, Beatles, Rolling Stones, Pink Floyd, Led Zeppelin, Queen, Metallica, Nirvana, Radiohead,
        Coldplay, U2, ABBA, AC/DC, Black Sabbath, Iron Maiden, Deep Purple, Genesis, Pearl Jam, Linkin Park, Green
        Day, Foo Fighters, Backstreet Boys, Spice Girls, Kraftwerk, Depeche Mode, New Order, Joy Division, Catholic,
        Protestant, Orthodox, Lutheran, Anglican, Methodist, Baptist, Calvinist, Jewish, Muslim, Christian, Hindu,
        Buddhist, Islam, Christianity, Judaism, Hinduism, Buddhism, Sikh, Mormon, Jesuits, Franciscans, Freemasons,
        Sunni, Shia, Sufi, Quaker, Universal Music Group, Daimler, ThyssenKrupp, Petrobras, Mitsubishi, Hyundai, Kia,
        Tata, Infosys, Vivendi, Bertelsmann, Axel Springer, Lego, Maersk, Carlsberg, Heineken, Allianz, Generali,
        Santander, Repsol, Statoil, Equinor, Spotify, Saab
        """,
    "MISC": """
        Android, macOS, Unix, Photoshop, Excel, PowerPoint, Java, Python, JavaScript, Fortran, Perl, MySQL, Docker,
        Hadoop, Safari, Internet Explorer, Chrome, iPhone, iPad, iPod, Macintosh, PlayStation, Xbox, Game Boy, Wii,
        Nintendo DS, Commodore 64, Kindle, Gmail, Google Maps, YouTube, Wikipedia, USB, HTTP, HTML, GPS, Wi-Fi, GSM,
        Boeing 747, Airbus A320, Spitfire, Titanic, Bismarck, Concorde, Apollo 11, Hubble, Voyager, Sputnik, Corolla,
        Camry, Mustang, Beetle, Civic, Star Wars, Star Trek, Titanic, Casablanca, Avatar, Inception, The Matrix, Jaws,
        Psycho, Vertigo, Alien, Gladiator, Frozen, Toy Story, Shrek, Jurassic Park, Pulp Fiction, The Godfather,
        Citizen Kane, Breaking Bad, Game of Thrones, Friends, Seinfeld, The Simpsons, Family Guy, South Park, Doctor
        Who, Sesame Street, Big Brother, American Idol, The X Factor, Lost, Glee, Hamlet, Macbeth, Othello, King Lear,
        Romeo and Juliet, Faust, Ulysses, Don Quixote, War and Peace, Moby-Dick, Dracula, Frankenstein, Jane Eyre,
        Emma, Pride and Prejudice, Great Expectations, Oliver Twist, Les Misérables, Lolita, Dune, The Hobbit, The
        Lord of the Rings, Iliad, Odyssey, Aeneid, Divine Comedy, Bible, Quran, Torah, Talmud, Old Testament, New
        Testament, Vedas, Mahabharata, Ramayana, Bhagavad Gita, Guernica, Mona Lisa, The Last Supper, The Scream,
        Messiah, Aida, Tosca, La Traviata, Rigoletto, Don Giovanni, The Magic Flute, Swan Lake, The Nutcracker,
        Tristan und Isolde, Parsifal, Thriller, Abbey Road, Nevermind, Imagine, Yesterday, Bohemian Rhapsody, Hey
        Jude, Hallelujah, Yellow Submarine, Time, Newsweek, Vogue, Rolling Stone, Billboard, New York Times,
        Washington Post, The Guardian, Le Monde, Der Spiegel, Forbes, The Economist, Daily Telegraph, Playboy, Pravda,
        Minecraft, Tetris, Pac-Man, Super Mario, Sonic, Pokémon, Final Fantasy, Doom, Halo, Zelda, The Sims, World of
        Warcraft, Dungeons & Dragons, Monopoly, Nobel Prize, Pulitzer Prize, Booker Prize, Academy Award, Oscar,
        Grammy, Emmy, Tony Award, Golden Globe, Palme d'Or, Medal of Honor, Victoria Cross, Purple Heart, Legion of
        Honour, Order of Merit, Ballon d'Or, World Cup, Olympic Games, Olympics, Super Bowl, World Series, Tour de
        France, Wimbledon, Champions League, Premier League, Bundesliga, La Liga, Serie A, Stanley Cup, FA Cup, Europa
        League, Davis Cup, Formula One, Grand Prix, Eurovision, Oktoberfest, Woodstock, Christmas, Easter, Ramadan,
        Diwali, Halloween, Thanksgiving, Hanukkah, World War II, World War I, Cold War, Vietnam War, Gulf War, Crimean
        War, Civil War, American Revolution, French Revolution, Industrial Revolution, Renaissance, Enlightenment,
        Reformation, Holocaust, Great Depression, Crusades, Hurricane Katrina, Black Death, Magna Carta, Treaty of
        Versailles, Geneva Convention, Bill of Rights, Brexit, Watergate, Marxism, Communism, Fascism, Capitalism,
        Impressionism, Cubism, Baroque, Romanticism, Surrealism, Jazz, Reggae, Hip hop, Bitcoin, Euro, Sanskrit,
        Esperanto, Swahili, Yiddish, Latin, Cyrillic, Nazism, Zionism, Brassicaceae, Canidae, Jurassic, Cretaceous,
        Alzheimer's, Ebola, DNA, RNA, HIV, Venus, Jupiter, Saturn, General Relativity, Windows XP, Linux, Bluetooth,
        Debian, Ubuntu, Fedora, FreeBSD, Solaris, iOS, ChromeOS, Apache, nginx, Redis, PostgreSQL, MongoDB, Cassandra,
        Kafka, RabbitMQ, Elasticsearch, Kubernetes, Ansible, Terraform, Jenkins, Git, Subversion, Mercurial, Bash,
        Vim, Emacs, Eclipse, Visual Studio, Xcode, LibreOffice, OpenOffice, LaTeX, TeX, GIMP, Blender, Thunderbird,
        Opera, Netscape, Ruby, Rust, Go, Kotlin, Swift, Scala, Haskell, Erlang, Lua, PHP, COBOL, Pascal, Lisp,
        TypeScript, Django, Flask, Rails, React, Angular, jQuery, NumPy, SciPy, pandas, PyTorch, TensorFlow, Keras,
        OpenSSL, OpenSSH, Samba, Sendmail, Exim, Dovecot, Wireshark, VirtualBox, VMware, Xen, Hyper-V, Outlook, Teams,
        Skype, Zoom, Slack, Dropbox, WhatsApp, Instagram, Azure, Alexa, Siri, ChatGPT, BERT, Bing, DirectX, OpenGL,
        TCP, UDP, IP, IPv6, DNS, DHCP, FTP, SSH, TLS, SSL, SMTP, IMAP, POP3, LDAP, Kerberos, SNMP, NFS, REST, SOAP,
        XML, JSON, YAML, CSV, PDF, ASCII, Unicode, UTF-8, PNG, JPEG, GIF, MP3, MPEG, HDMI, PCI, SATA, RAID, ROM, RAM,
        CPU, GPU, SSD, API, SDK, GUI, CLI, URL, URI, HTTPS, CSS, SVG, POSIX, ISO 9001, RFC 822, IEEE 802.11, MIT
        License, GNU General Public License, Creative Commons, BSD, GNU, GNOME, KDE, X11, NULL, TRUE, FALSE, INSERT,
        DELETE, UPDATE, CREATE, TABLE, BEGIN, END, WARNING, IMPORTANT, ERROR, Galaxy, ThinkPad, Raspberry Pi, Surface,
        Machine Learning, Artificial Intelligence, Neural Network, Gradient Descent, Linear Regression, Operating
        System, File System, Data Structure, Load Balancing, Version Control, Access Control, Error Handling, Garbage
        Collection, Quality Management, Risk Assessment, Supply Chain, Human Resources, Project Management, Customer
        Service, Terms of Service, Privacy Policy, Purchase Order, Release Notes, Installation Guide, User Manual,
        Requirements, Configuration, Installation, Appendix, Overview, Summary, Background, Acknowledgements,
        Dedication, Options, Parameters, Permission, Licensor, Contributor, Copyright, Agreement, Directory, Variable,
        Description, Documentation, Support, Download, Settings, Contents, Template, Total, Subtotal, Discount,
        Invoice, Receipt, Quantity, Category, General Data Protection Regulation, Clean Air Act, Data Protection Act,
        Code of Conduct, Kyoto Protocol, Maastricht Treaty, Form 1040, Form W-2, Working Group, Pull Request, Makefile
        """,
}
"""Names by type, separated by commas."""
